package lifecycle

import (
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// HookKind names one of a container's hooks.
type HookKind string

const (
	PostStart HookKind = "postStart"
	PreStop   HookKind = "preStop"
)

// HookRun is the state of a hook of a container's latest run. A hook runs once.
type HookRun struct {
	Issued  *time.Duration `json:"issued,omitempty"` // CLOCK_BOOTTIME
	Outcome Outcome        `json:"outcome,omitempty"`
}

// Reasons of a container's stop, passed to the hook if the manifest requests it.
const (
	reasonDelete     = "Delete"     // a user stops the pod, or replaces this container
	reasonHealth     = "Health"     // a probe of the container has failed
	reasonDependency = "Dependency" // another part of the pod has ended or failed
)

// PlannedHook returns a container's hook of a kind, or nil.
func PlannedHook(c *pod.Container, kind HookKind) *pod.Handler {
	switch kind {
	case PostStart:
		return c.PostStart
	case PreStop:
		return c.PreStop
	}
	return nil
}

func (c *Container) hook(kind HookKind) *HookRun {
	if kind == PostStart {
		return &c.PostStart
	}
	return &c.PreStop
}

// hook issues a container's hook once, and reports whether the hook is over; without a hook it
// reports true.
func (d *decision) hook(c *pod.Container, observed *Container, kind HookKind) (over bool) {
	run := observed.hook(kind)
	if PlannedHook(c, kind) == nil || run.Outcome != "" {
		return true
	}
	if run.Issued == nil {
		a := Action{Kind: RunHook, Container: c.Name, Attempt: observed.Attempt, Hook: kind}
		if d.plan.HookReason && kind == PreStop {
			a.Reason = d.stopReason(observed)
		}
		d.act(a)
	}
	return false
}

// stopReason returns the reason of a container's stop, spelled as in the container-environment
// proposal.
func (d *decision) stopReason(observed *Container) string {
	switch {
	case d.ending != nil && d.ending.Cause == EndRequested, d.ending == nil && observed.Kill.Why == KillReplaced:
		return reasonDelete
	case d.ending == nil && observed.Kill.Why != KillPostStart:
		return reasonHealth
	}
	return reasonDependency
}

// issuedHook records the intent to run a hook.
func (c *Container) issuedHook(planned *pod.Container, now Now, kind HookKind) {
	if PlannedHook(planned, kind) == nil || c.State != RunRunning {
		return
	}
	if run := c.hook(kind); run.Issued == nil {
		boot := now.Boot
		run.Issued = &boot
	}
}

// hooked applies a hook's outcome. A failed postStart hook ends the run; a failed preStop hook
// changes nothing.
func (c *Container) hooked(plan *pod.Plan, planned *pod.Container, e Event) {
	if PlannedHook(planned, e.Hook) == nil || c.State != RunRunning || e.Outcome == "" {
		return
	}
	run := c.hook(e.Hook)
	if run.Issued == nil || run.Outcome != "" {
		return
	}
	run.Outcome = e.Outcome
	if e.Hook == PostStart && e.Outcome != Success && c.Kill == nil {
		c.Kill = &Kill{Why: KillPostStart, Since: e.At, GraceEnd: e.At.Boot + grace(plan.GraceSeconds)}
	}
}
