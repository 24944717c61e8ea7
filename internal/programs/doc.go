// Package programs finds the supervisor program and the program of the network stack in user space.
// A release embeds the small programs of internal/programs/supervisor and
// internal/programs/netstack (build tag embedprograms). A plain go build links both in and
// re-executes itself.
package programs
