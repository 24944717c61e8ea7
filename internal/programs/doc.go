// Package embed is where the supervisor's program comes from, and that of the network stack
// in user space. A release carries the lean programs of internal/stage/back and
// internal/stage/netstack inside itself (build tag embedback); a plain go build links both
// in and re-executes itself.
package programs
