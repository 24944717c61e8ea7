// Package output copies what a container writes from its pipes and terminal to its log and to
// attached clients. A supervisor that is killed loses no byte: see inFlight.
package output
