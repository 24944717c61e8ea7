package lifecycle

import (
	"time"

	"github.com/podrun/podrun/pod"
)

// HookKind names one of a container's hooks.
type HookKind string

const (
	PostStart HookKind = "postStart"
	PreStop   HookKind = "preStop"
)

// HookRun is what is known of a hook of a container's latest run. It is run once.
type HookRun struct {
	Issued  *time.Duration `json:"issued,omitempty"` // Boot time
	Outcome Outcome        `json:"outcome,omitempty"`
}

// Why a container is stopped, as a hook is told if the pod asks for it.
const (
	reasonDelete     = "Delete"     // somebody wants the pod gone, or this container another
	reasonHealth     = "Health"     // a probe of the container has failed
	reasonDependency = "Dependency" // something else of the pod has ended, or failed
)

// PlannedHook gives a container's hook of a kind, or nil.
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

// hook begins a container's hook, if that has not been done, and says whether it is
// over, if there is one.
func (d *decision) hook(c *pod.Container, seen *Container, kind HookKind) (over bool) {
	run := seen.hook(kind)
	if PlannedHook(c, kind) == nil || run.Outcome != "" {
		return true
	}
	if run.Issued == nil {
		a := Action{Kind: RunHook, Container: c.Name, Attempt: seen.Attempt, Hook: kind}
		if d.plan.HookReason && kind == PreStop {
			a.Reason = d.stopReason(seen)
		}
		d.act(a)
	}
	return false
}

// stopReason says in the word of the container-environment proposal why a container
// is stopped.
func (d *decision) stopReason(seen *Container) string {
	switch {
	case d.ending != nil && d.ending.Cause == EndAsked, d.ending == nil && seen.Kill.Why == KillReplaced:
		return reasonDelete
	case d.ending == nil && seen.Kill.Why != KillPostStart:
		return reasonHealth
	}
	return reasonDependency
}

// issuedHook folds the intent to run a hook.
func (c *Container) issuedHook(planned *pod.Container, at Now, kind HookKind) {
	if PlannedHook(planned, kind) == nil || c.State != RunRunning {
		return
	}
	if run := c.hook(kind); run.Issued == nil {
		boot := at.Boot
		run.Issued = &boot
	}
}

// hooked folds a hook's outcome. A postStart hook that has failed ends the run; a
// preStop hook's failure changes nothing.
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
