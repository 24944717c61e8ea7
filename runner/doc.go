// Package runner runs one pod from its Plan. It is the supervisor: it asks lifecycle what to do, does
// it, and applies the result.
//
// loop.go is the loop, behind an interface; engine.go carries actions out; control*.go serve the
// control socket; recover.go and recreate.go take over a pod from an earlier supervisor.
package runner
