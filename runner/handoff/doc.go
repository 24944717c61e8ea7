// Package handoff keeps what a supervisor leaves to its successor: a state file, descriptors that the
// pod init holds, and the exit statuses of processes.
package handoff
