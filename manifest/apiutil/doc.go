// Package apiutil has helpers for the Go types of the Kubernetes API: pointers, quantities, JSON fields.
package apiutil
