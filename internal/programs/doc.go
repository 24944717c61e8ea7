// Package programs finds the supervisor program and the program of the network stack in user
// space. A release carries the lean programs of internal/programs/supervisor and
// internal/programs/netstack inside itself (build tag embedprograms); a plain go build links both
// in and re-executes itself.
package programs
