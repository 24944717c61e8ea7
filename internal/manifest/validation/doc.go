// Package validation checks objects with their defaults as the API server checks them, in its words, and the
// changes of objects that exist.
package validation
