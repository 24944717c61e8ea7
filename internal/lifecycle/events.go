package lifecycle

import (
	"fmt"

	"github.com/podrun/podrun/internal/pod"
)

// The reasons of the pod's events: the kubelet's (pkg/kubelet/events), and podrun's own where a
// container runtime reports the fact instead of the kubelet.
const (
	eventCreated       = "Created"
	eventStarted       = "Started"
	eventFailed        = "Failed"
	eventKilling       = "Killing"
	eventBackOff       = "BackOff"
	eventNoSandbox     = "FailedCreatePodSandBox"
	eventLostSandbox   = "PodSandboxLost" // podrun's own
	eventChanged       = "SandboxChanged"
	eventUnpaused      = "Unpaused"            // podrun's own, as pod.ReasonPaused
	ReasonLogLinesLost = "LogLinesLost"        // podrun's own: a full disk loses lines of a log
	eventOutOfMemory   = reasonOOMKilled       // podrun's own: the kubelet has an event for the machine's memory only
	reasonDeadline     = "DeadlineExceeded"    // also the reason of the pod
	stoppingContainer  = "Stopping container " // the kubelet's killContainer
)

// moment is the state before an event, for comparison with the state after it.
type moment struct {
	sandbox SandboxState
	attempt int
	ending  bool
	paused  bool
	events  int64
	c       Container
}

func (o *Observed) moment(container string) moment {
	return moment{sandbox: o.Sandbox, attempt: o.Attempt, ending: o.Ending != nil, paused: o.Pause.paused(), events: o.Events.Seq, c: *o.container(container)}
}

// onlyProbeRoutine reports whether an applied event was only the routine of a probe: the probe was started, or
// its outcome changed no result.
func (was moment) onlyProbeRoutine(o *Observed, e Event) bool {
	if was.events != o.Events.Seq || was.ending != (o.Ending != nil) {
		return false
	}
	if e.Kind == Issued {
		return e.Action != nil && e.Action.Kind == RunProbe
	}
	c := o.container(e.Container)
	return e.Kind == Probed && was.c.Kill == c.Kill && was.c.probe(e.Probe).Result == c.probe(e.Probe).Result
}

// note adds to the pod's events; container is "" for an event of the whole pod.
func (o *Observed) note(now Now, kind pod.EventType, reason, container, message string) {
	o.Events.Add(pod.Event{Type: kind, Reason: reason, Container: container, Message: message, Last: now.Wall})
}

// noteEvents records what an applied event has changed.
func (o *Observed) noteEvents(plan *pod.Plan, was moment, e Event) {
	if o.Sandbox != was.sandbox && (e.Kind == SandboxFailed || e.Kind == SandboxKilled) {
		o.noteSandboxFailure(was, e)
	}
	if e.Kind == Warned {
		o.note(e.At, pod.Warning, e.Reason, "", e.Message)
	}
	switch paused := o.Pause.paused(); {
	case paused && !was.paused:
		o.note(e.At, pod.Normal, pod.ReasonPaused, "", "Pod paused")
	case was.paused && !paused:
		o.note(e.At, pod.Normal, eventUnpaused, "", "Pod unpaused")
	}
	if e.Kind == VolumesFailed {
		o.noteMounts(e)
	}
	if o.Attempt != was.attempt {
		o.note(e.At, pod.Normal, eventChanged, "", "Pod sandbox changed, it will be killed and re-created.")
	}
	o.noteProbeOrHook(plan, was, e)
	if c := o.container(e.Container); c.State != was.c.State {
		o.noteRun(plan, e, c, was.ending)
	}
	if was.ending || o.Ending == nil {
		return
	}
	switch o.Ending.Cause {
	case EndDeadline:
		o.note(e.At, pod.Normal, reasonDeadline, "", o.Ending.Message)
	case EndEvicted:
		o.note(e.At, pod.Warning, pod.ReasonEvicted, "", o.Ending.Message)
	}
	for _, list := range plan.All() {
		for i := range list {
			if o.container(list[i].Name).State == RunRunning {
				o.noteKilling(e.At, list[i].Name)
			}
		}
	}
}

// noteSandboxFailure records a sandbox that could not be made, or died.
func (o *Observed) noteSandboxFailure(was moment, e Event) {
	if was.sandbox == SandboxCreating && e.Kind == SandboxFailed {
		o.note(e.At, pod.Warning, eventNoSandbox, "", joinMessage("Failed to create pod sandbox", e.Message))
		return
	}
	o.note(e.At, pod.Warning, eventLostSandbox, "", joinMessage("Pod sandbox is gone", e.Message))
}

func joinMessage(text, more string) string {
	if more == "" {
		return text
	}
	return text + ": " + more
}

// noteRun records a change of a container's run.
func (o *Observed) noteRun(plan *pod.Plan, e Event, c *Container, stopping bool) {
	name := e.Container
	switch c.State {
	case RunRunning:
		o.note(e.At, pod.Normal, eventCreated, name, "Container created")
		o.note(e.At, pod.Normal, eventStarted, name, "Container started")
		if stopping {
			o.noteKilling(e.At, name)
		}
	case RunNotCreated:
		o.note(e.At, pod.Warning, eventFailed, name, "Error: "+e.Message)
	case RunEnded:
		if e.Kind == StartFailed {
			o.note(e.At, pod.Normal, eventCreated, name, "Container created")
			o.note(e.At, pod.Warning, eventFailed, name, "Error: "+e.Message)
		}
		if c.End.Reason == reasonOOMKilled {
			o.note(e.At, pod.Warning, eventOutOfMemory, name, outOfMemory(plan, e))
		}
		if o.backingOff(plan, e) {
			o.note(e.At, pod.Warning, eventBackOff, name,
				fmt.Sprintf("Back-off restarting failed container %s in pod %s_%s(%s)", name, plan.Name, plan.Namespace, plan.UID))
		}
	}
}

// backingOff reports whether the container of an event waits for its next start.
func (o *Observed) backingOff(plan *pod.Plan, e Event) bool {
	st := Status(plan, o, e.At)
	c, ok := st.Container(e.Container)
	return ok && c.State.Waiting != nil && c.State.Waiting.Reason == "CrashLoopBackOff"
}

func (o *Observed) noteKilling(now Now, name string) {
	o.note(now, pod.Normal, eventKilling, name, stoppingContainer+name)
}

// outOfMemory returns a message that names the exhausted memory limit.
func outOfMemory(plan *pod.Plan, e Event) string {
	const killed = ": its processes were killed"
	c, ok := plan.Container(e.Container)
	switch {
	case ok && e.OOMLimit == OOMContainer:
		return "Container has used up its memory limit" + bytes(c.Resources.MemoryLimit) + killed
	case e.OOMLimit == OOMPod:
		return "The pod has used up its memory limit" + bytes(plan.Resources.MemoryLimit) + ", and this container was chosen" + killed
	}
	return "The machine, or what podrun may use of it, is out of memory, and this container was chosen" + killed
}

// bytes formats a size as in a manifest, in parentheses; "" for 0.
func bytes(n int64) string {
	if n == 0 {
		return ""
	}
	unit := ""
	for _, next := range []string{"Ki", "Mi", "Gi", "Ti"} {
		if n%1024 != 0 {
			break
		}
		n, unit = n/1024, next
	}
	return fmt.Sprintf(" (%d%s)", n, unit)
}
