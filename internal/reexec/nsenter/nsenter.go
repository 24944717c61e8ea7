// Package userns enters namespaces before the Go runtime starts. It is C: see
// enter.c for the environment it obeys and keeper.c for the pod's first process.
// Importing it, blank, links the constructor in.
package nsenter

// #cgo CFLAGS: -Wall -Werror -O2
import "C"
