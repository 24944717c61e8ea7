// Package embed is where the supervisor's program comes from. A release carries
// the lean program of internal/stage/back inside itself (build tag embedback); a
// plain go build links the supervisor in and re-executes itself.
package embed
