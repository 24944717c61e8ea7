// Package conversion converts objects between the Go types of Kubernetes and the form in which
// they are stored.
package conversion
