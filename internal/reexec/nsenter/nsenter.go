// Package nsenter enters namespaces before the Go runtime starts. It is C: see
// nsenter.c for the environment it obeys and podinit.c for the pod's first process.
// Importing it, blank, links the constructor in.
package nsenter

// #cgo CFLAGS: -Wall -Werror -O2
import "C"
