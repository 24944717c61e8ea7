// Package api has the plain types of requests to the image store and of their results.
package api
