// Package handoff keeps what a supervisor leaves to the next one: the state file, descriptors that pod init
// holds, and the exit statuses of processes.
package handoff
