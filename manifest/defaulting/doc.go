// Package defaulting fills in what the API server fills in when an object is created.
package defaulting
