// Package programs finds the supervisor program, libcontainer's init, the netstack program
// and the image program. A release embeds the programs of the directories below (build tag embedprograms). A plain go
// build links them in and re-executes itself.
package programs
