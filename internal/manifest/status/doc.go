// Package status renders what the supervisor reports as the status of Kubernetes objects, and its events
// as Event objects.
package status
