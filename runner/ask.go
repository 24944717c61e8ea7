package runner

import (
	"time"

	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/runner/probe"
)

// probeTries is how often a probe that could not be asked is asked again before that
// is told (kubelet: maxProbeRetries in pkg/kubelet/prober).
const probeTries = 3

// asker asks the pod's servers, from inside its network.
func (e *engine) asker() *probe.Prober {
	e.asking.Do(func() {
		at := podAddress
		e.mu.Lock()
		if s := e.sandbox; s != nil && len(s.addresses()) > 0 {
			at = s.addresses()[0].String()
		}
		e.mu.Unlock()
		e.prober = probe.New(at, e.sockets.dial)
	})
	return e.prober
}

// ask probes a container, or runs one of its hooks, beside the loop. An instance that
// has ended answers nothing: its end is on the way.
func (e *engine) ask(a lifecycle.Action) {
	defer e.work(-1)
	x := e.enter(a.Container)
	if x == nil {
		return
	}
	defer x.release()
	if x.attempt != a.Attempt {
		return
	}
	ev := lifecycle.Event{Kind: lifecycle.Probed, Container: a.Container, Attempt: a.Attempt, Probe: a.Probe}
	if a.Kind == lifecycle.RunHook {
		ev.Kind, ev.Hook = lifecycle.Hooked, a.Hook
		ev.Outcome, ev.Message = e.runHook(x, lifecycle.PlannedHook(x.plan, a.Hook), a.Reason)
	} else {
		ev.Outcome, ev.Message = e.runProbe(x, lifecycle.PlannedProbe(x.plan, a.Probe))
	}
	if x.context().Err() == nil {
		e.emit(ev)
	}
}

// runProbe asks once, and again if that could not be done.
func (e *engine) runProbe(x *container, p *pod.Probe) (outcome lifecycle.Outcome, message string) {
	timeout := time.Duration(p.TimeoutSeconds) * time.Second
	defer e.probes.pass()()
	for range probeTries {
		if p.Exec != nil {
			outcome, message = x.probeExec(p.Exec, timeout)
		} else {
			outcome, message = e.asker().Ask(x.context(), &p.Handler, timeout)
		}
		if outcome != lifecycle.Unknown {
			break
		}
	}
	return outcome, message
}

// runHook runs a hook to its end, or to the container's: nothing else limits it.
func (e *engine) runHook(x *container, h *pod.Handler, reason string) (lifecycle.Outcome, string) {
	ctx := x.context()
	var err error
	switch {
	case h.Exec != nil:
		args := h.Exec
		if reason != "" {
			args = append(args[:len(args):len(args)], "--reason="+reason)
		}
		err = x.hookExec(args)
	case h.HTTP != nil:
		err = e.asker().Notify(ctx, h.HTTP, reason)
	case h.SleepSeconds != nil:
		select {
		case <-time.After(time.Duration(*h.SleepSeconds) * time.Second):
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		return lifecycle.Failure, err.Error()
	}
	return lifecycle.Success, ""
}
