// Package defaulting sets the defaults that the API server sets when an object is created.
package defaulting
