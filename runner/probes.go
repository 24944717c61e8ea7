package runner

import (
	"fmt"
	"os"
	"time"

	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/sleep"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/runner/container"
	"github.com/podrun/podrun/runner/network"
	"github.com/podrun/podrun/runner/probe"
)

// probeTries is how often a probe that could not be run is tried before that is reported (kubelet:
// maxProbeRetries in pkg/kubelet/prober).
const probeTries = 3

// getProber returns the prober. It connects to the pod's servers from inside the pod's network namespace.
func (e *engine) getProber() *probe.Prober {
	e.proberOnce.Do(func() {
		address := network.FallbackIP
		e.mu.Lock()
		if s := e.sandbox; s != nil && len(s.Addresses()) > 0 {
			address = s.Addresses()[0].String()
		}
		e.mu.Unlock()
		e.prober = probe.New(address, e.sockets.Dial)
	})
	return e.prober
}

// probeOrHook probes a container or runs one of its hooks, concurrently with the loop. For an instance that
// has exited there is no result: its Exited event follows.
func (e *engine) probeOrHook(a lifecycle.Action) {
	ev, ok := e.resultOf(a)
	if a.Kind == lifecycle.RunHook {
		defer e.addBusy(-1)
	} else { // the supervisor may hibernate once the loop has the result, and not before
		e.addBusy(-1)
	}
	if ok {
		e.emit(ev)
	}
}

// resultOf runs the probe or hook of an action.
func (e *engine) resultOf(a lifecycle.Action) (ev lifecycle.Event, ok bool) {
	x := e.acquire(a.Container)
	if x == nil {
		return ev, false
	}
	defer x.Release()
	if x.Attempt != a.Attempt {
		return ev, false
	}
	ev = lifecycle.Event{Kind: lifecycle.Probed, Container: a.Container, Attempt: a.Attempt, Probe: a.Probe}
	if a.Kind == lifecycle.RunHook {
		ev.Kind, ev.Hook = lifecycle.Hooked, a.Hook
		ev.Outcome, ev.Message = e.runHook(x, lifecycle.PlannedHook(x.Plan, a.Hook), a.Reason)
	} else {
		ev.Outcome, ev.Message = e.runProbe(x, lifecycle.PlannedProbe(x.Plan, a.Probe))
	}
	ok = x.Context().Err() == nil
	if ok && ev.Kind == lifecycle.Probed {
		e.countProbe(x, ev)
	}
	return ev, ok
}

// probeCounters returns the file that counts the results of probes, or nil if it cannot be opened. The caller holds
// counting. The file is open until the sandbox is removed.
func (e *engine) probeCounters(plan *pod.Plan) *os.File {
	if e.counters == nil {
		var err error
		if e.counters, err = e.pod.OpenProbeCounters(plan); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	return e.counters
}

func (e *engine) closeProbeCounters() {
	e.counting.Lock()
	defer e.counting.Unlock()
	if e.counters != nil {
		e.counters.Close()
		e.counters = nil
	}
}

// countProbe counts the result of a probe. One that could not be run is not counted (kubelet: worker.doProbe in
// pkg/kubelet/prober).
func (e *engine) countProbe(x *container.Container, ev lifecycle.Event) {
	plan := e.currentPlan()
	e.counting.Lock()
	defer e.counting.Unlock()
	if x.Context().Err() != nil {
		return // its pod may be gone
	}
	counters := e.probeCounters(plan)
	if counters == nil || ev.Outcome == lifecycle.Unknown {
		return
	}
	counter := store.ProbeCounter(plan, ev.Container, string(ev.Probe))
	if ev.Outcome == lifecycle.Failure {
		counter++
	}
	if err := store.CountProbe(counters, counter); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// runProbe runs a probe, and repeats it if it could not be run.
func (e *engine) runProbe(x *container.Container, p *pod.Probe) (outcome lifecycle.Outcome, message string) {
	timeout := time.Duration(p.TimeoutSeconds) * time.Second
	defer e.probes.Enter()()
	for range probeTries {
		if p.Exec != nil {
			outcome, message = x.ProbeExec(p.Exec, timeout)
		} else {
			outcome, message = e.getProber().Run(x.Context(), &p.Handler, timeout)
		}
		if outcome != lifecycle.Unknown {
			break
		}
	}
	return outcome, message
}

// runHook runs a hook until the hook or the container ends. There is no other time limit.
func (e *engine) runHook(x *container.Container, h *pod.Handler, reason string) (lifecycle.Outcome, string) {
	ctx := x.Context()
	var err error
	switch {
	case h.Exec != nil:
		args := h.Exec
		if reason != "" {
			args = append(args[:len(args):len(args)], "--reason="+reason)
		}
		err = x.HookExec(args)
	case h.HTTP != nil:
		err = e.getProber().Notify(ctx, h.HTTP, reason)
	case h.SleepSeconds != nil:
		err = sleep.For(ctx, time.Duration(*h.SleepSeconds)*time.Second)
	}
	if err != nil {
		return lifecycle.Failure, err.Error()
	}
	return lifecycle.Success, ""
}
