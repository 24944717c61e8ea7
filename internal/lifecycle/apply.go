package lifecycle

import (
	"github.com/podrun/podrun/internal/pod"
)

// Apply applies one event. An event that does not fit the state (late, repeated, of another attempt,
// or of no container of the plan) changes nothing.
//
// statusChanged is false if a probe only started, or had the same result as before: Status stays the same,
// and a supervisor that recovers the pod does not need the event.
func (o *Observed) Apply(plan *pod.Plan, e Event) (statusChanged bool) {
	if o.StartTime == nil {
		now := e.At
		o.StartTime = &now
	}
	was := o.moment(e.Container)
	// The deadline is applied before the event, so that a deadline in the past wins.
	o.Ending = o.currentEnding(plan, e.At)
	if o.ranDuringPause(plan, e) {
		e.Outcome, e.Message = Unknown, "the pod was paused meanwhile"
	}
	o.applyEvent(plan, e)
	if o.Ending == nil {
		o.Ending = o.endingByContainers(plan, e.At)
	}
	o.endRestartAll(plan)
	o.endOutdatedRuns(plan, e.At)
	o.noteEvents(plan, was, e)
	if was.onlyProbeRoutine(o, e) {
		return false
	}
	o.noteConditions(plan, e.At)
	return true
}

// applyEvent changes the facts that an event is about; Apply derives the rest from them.
func (o *Observed) applyEvent(plan *pod.Plan, e Event) {
	switch e.Kind {
	case Issued:
		o.issued(plan, e.At, e.Action)
	case SandboxReady, SandboxFailed, SandboxRemoved, SandboxKilled:
		if e.Attempt == o.Attempt {
			o.sandboxEvent(plan, e)
		}
	case VolumesFailed:
		if e.Attempt == o.Attempt {
			o.volumesFailed(e)
		}
	case Restored:
		o.restoreRun(plan, e)
	case Started, StartFailed, Exited, Probed, Hooked:
		o.containerEvent(plan, e)
	case ObjectChanged:
		o.tryAgain(e.At)
	case PauseRequested, UnpauseRequested, Frozen, Thawed:
		o.pauseEvent(e)
	case ConditionSet:
		o.setCondition(e)
	case Recovered:
		o.resetInFlight(plan, e)
	case StopRequested:
		o.Deleting = o.Deleting || e.Reason == ""
		o.beginStop(plan, e)
	case StorageMeasured:
		o.measured(plan, e)
	}
}

// containerEvent applies an event about a container's latest run.
func (o *Observed) containerEvent(plan *pod.Plan, e Event) {
	c, ok := o.Containers[e.Container]
	if !ok || c.Attempt != e.Attempt {
		return
	}
	planned, ok := plan.Container(e.Container)
	switch {
	case e.Kind != Probed && e.Kind != Hooked:
		c.applyEvent(e)
		o.restartAll(plan, c, e)
	case !ok || o.Ending != nil && (e.Kind == Probed && e.Probe != Readiness || e.Hook == PostStart):
		// A pod that ends ignores such an outcome.
	case e.Kind == Probed:
		c.probed(plan, planned, e)
	default:
		c.hooked(plan, planned, e)
	}
}

// resetInFlight resets what was under way when the supervisor died: probes and preStop hooks run again; a
// postStart hook does not run twice (kubelet: after its own restart it starts no container that
// runs).
//
// The result of a probe's thresholds stays; the count towards them starts at zero (kubelet: new
// workers have no results).
//
// Probes of several pods or containers must not all run at once when supervisors start: Seed gives
// each probe its own delay of up to its period (kubelet: worker.run in pkg/kubelet/prober).
func (o *Observed) resetInFlight(plan *pod.Plan, e Event) {
	o.Storage.Issued = false
	o.Pause.repeatAction()
	for name, c := range o.Containers {
		if c.State != RunRunning {
			continue
		}
		planned, _ := plan.Container(name)
		for _, kind := range []ProbeKind{Startup, Liveness, Readiness} {
			c.probe(kind).reset(c.StartedBoot, planned, kind, e)
		}
		if c.PostStart.Issued != nil && c.PostStart.Outcome == "" {
			c.PostStart.Outcome = Success
		}
		if c.PreStop.Outcome == "" {
			c.PreStop.Issued = nil
		}
	}
}

// issued records the intent to carry out an action.
func (o *Observed) issued(plan *pod.Plan, now Now, a *Action) {
	if a == nil {
		return
	}
	switch a.Kind {
	case CreateSandbox:
		if o.Sandbox == SandboxNone {
			o.Sandbox = SandboxCreating
		}
	case RemoveSandbox:
		if o.Sandbox == SandboxUp || o.Sandbox == SandboxBroken {
			o.Sandbox = SandboxRemoving
		}
	case FreezeSandbox, ThawSandbox:
		o.Pause.issued(a.Kind)
	case MeasureStorage:
		o.Storage.Issued = true
	case StartContainer:
		if planned, ok := plan.Container(a.Container); ok {
			o.issuedStart(planned, now, *a)
		}
	case StopContainer, KillContainer:
		if c, ok := o.Containers[a.Container]; ok && c.Attempt == a.Attempt {
			c.issuedSignal(now, a.Kind)
		}
	case RunProbe, RunHook:
		c, ok := o.Containers[a.Container]
		if planned, known := plan.Container(a.Container); known && ok && c.Attempt == a.Attempt {
			c.issuedProbe(planned, now, a.Probe)
			c.issuedHook(planned, now, a.Hook)
		}
	}
}

// issuedStart begins a container's next run.
func (o *Observed) issuedStart(planned *pod.Container, now Now, a Action) {
	c, ok := o.Containers[a.Container]
	if !ok {
		c = &Container{}
		if o.Containers == nil {
			o.Containers = map[string]*Container{}
		}
		o.Containers[a.Container] = c
	}
	switch {
	case c.State == RunNotCreated && a.Attempt == c.Attempt: // there was no such run
	case c.live(), ok && a.Attempt <= c.Attempt:
		return
	case c.State == RunEnded && c.outdated(planned):
		c.Backoff = 0 // the kubelet counts for each definition of a container
	case c.State == RunEnded && (c.FreshStart == FreshFromScratch || c.FreshStart == FreshAfterLoss): // it did not wait, so its back-off stays
	case c.State == RunEnded:
		c.Backoff = c.nextBackoff()
	}
	*c = Container{
		State: RunStarting, Attempt: a.Attempt, Revision: planned.Revision, Issued: now,
		Image: planned.Image, ImageID: planned.ImageID,
		ID: c.ID, User: c.User, End: c.End, PrevEnd: c.PrevEnd, Backoff: c.Backoff,
	}
}

// issuedSignal records a stop signal to a running container. A signal to a container that is still
// starting may find no process, so it does not count: Decide issues the stop again once the
// container runs.
func (c *Container) issuedSignal(now Now, kind ActionKind) {
	switch {
	case kind == KillContainer && c.live():
		c.KillIssued = true
	case kind == StopContainer && c.State == RunRunning && c.StopIssued == nil:
		boot := now.Boot
		c.StopIssued = &boot
	}
}

// applyEvent applies an event of the latest run.
func (c *Container) applyEvent(e Event) {
	switch {
	case e.Kind == Started && c.State == RunStarting:
		c.State, c.ID, c.User, c.Started = RunRunning, e.ContainerID, e.User, e.At.Wall
		c.StartedBoot = e.At.Boot
		c.KillIssued = false // it was sent before there was a process
	case e.Kind == StartFailed && c.State == RunStarting && neverMade(e.Reason):
		c.State, c.Ended = RunNotCreated, e.At.Boot
		c.NotCreated = &pod.Waiting{Reason: e.Reason, Message: e.Message}
		if c.TryAgain && e.Reason == ReasonCreateConfigError {
			c.Ended -= createRetry
		}
	case e.Kind == StartFailed && c.State == RunStarting:
		c.end(e, failedStart(e))
	case e.Kind == Exited && c.live():
		if c.Started.IsZero() {
			c.Started = c.Issued.Wall // it ended before the supervisor saw it run
		}
		c.end(e, exited(e))
	}
}

// end closes the latest run.
func (c *Container) end(e Event, t pod.Terminated) {
	if e.ContainerID != "" {
		c.ID = e.ContainerID
	}
	if c.Kill != nil && c.Kill.Why == KillRestartAll {
		t = pod.Terminated{ExitCode: 137, Reason: reasonRestartingAll, Message: messageRestartingAll}
	}
	t.StartedAt, t.FinishedAt, t.ContainerID = c.Started, e.At.Wall, containerID(c.ID)
	c.State, c.Ended = RunEnded, e.At.Boot
	c.PrevEnd, c.End = c.End, &t
}
