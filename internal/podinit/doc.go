// Package podinit starts the first processes of a pod (monitor, pod init, supervisor) and is the
// supervisor's client of the pod init. The C side is internal/reexec/nsenter; docs/explanation/protocol.md
// has the messages between them.
package podinit
