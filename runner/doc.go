// Package runner is the supervisor: it runs one pod from its Plan. It calls lifecycle.Decide, carries
// out the actions and applies their results.
//
// loop.go is the loop; it calls the engine through the interface executor. engine.go carries actions
// out; control*.go serve the control socket; recover.go and recreate.go take over a pod from an earlier
// supervisor.
package runner
