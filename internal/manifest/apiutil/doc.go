// Package apiutil has helpers for the Go types of the Kubernetes API: quantities, JSON fields, metadata.
package apiutil
