// Package programs finds the supervisor program, the program of the network stack in user space and the
// image program. A release embeds the programs of internal/programs/supervisor,
// internal/programs/netstack and internal/programs/image (build tag embedprograms). A plain go build links
// them in and re-executes itself.
package programs
