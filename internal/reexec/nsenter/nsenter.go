// Package nsenter enters namespaces before the Go runtime starts. It is written in C: see nsenter.c
// for the environment variables and podinit.c for the pod init. A blank import links the
// constructor in.
package nsenter

// #cgo CFLAGS: -Wall -Werror -O2
import "C"
