// Package nsenter enters namespaces before the Go runtime starts. It is written in C: see nsenter.c for the environment
// variables. A blank import links the constructor in. The other C files are the pod program (pod.c).
package nsenter

// #cgo CFLAGS: -Wall -Werror -O2
import "C"
