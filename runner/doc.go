// Package runner is the supervisor: it runs one pod from its Plan. It calls lifecycle.Decide, carries
// out the actions and applies their results.
//
// supervise.go is where the process begins. loop.go is the loop; it calls the engine through the interface
// executor. engine.go carries actions out, with containers.go, sandboxes.go and probes.go; the packages below
// do the work. control*.go serve the control socket; update.go applies another Plan. hibernate.go ends the
// supervisor of an idle pod; recover.go and recreate.go take over a pod from an earlier supervisor.
//
// Probes and hooks: probes.go runs them for the engine, package probe connects to servers, and
// container/probe.go executes commands.
package runner
