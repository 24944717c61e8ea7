package podclient

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/store"
)

const (
	// waitingAfter is how long a stop may take before the user is informed of what it waits for;
	// waitingEvery is the interval of repetition.
	waitingAfter = time.Second
	waitingEvery = 10 * time.Second
)

// ReportWaiting prints the names of the containers that still run, and why, after a while and then at intervals,
// until end is called. It is for the time in which containers of a pod are stopped. verb is the operation
// on the pod; grace is nil for the pod's own; waits, if not nil, selects the containers.
func ReportWaiting(out io.Writer, verb string, p store.Pod, grace *int64, waits func(pod.ContainerStatus) bool) (end func()) {
	done, over := make(chan struct{}), make(chan struct{})
	began := time.Now()
	go func() {
		defer close(over)
		for next := waitingAfter; ; next = waitingEvery {
			select {
			case <-done:
				return
			case <-time.After(next):
			}
			which, deaf := stillRuns(p, waits)
			if which == "" {
				continue
			}
			limit := ""
			if left := (stopTimeout(p, grace) - StopMargin - time.Since(began)).Round(time.Second); left > 0 {
				limit = fmt.Sprintf(", for up to %d s", left/time.Second)
			}
			fmt.Fprintf(out, "podrun: %s pod %s%s: %s\n", verb, p.Name, limit, which)
			if deaf && next == waitingAfter {
				fmt.Fprintln(out, "hint: --grace-period of podrun down and stop, or terminationGracePeriodSeconds in its manifest, shortens the wait")
			}
		}
	}()
	return func() { close(done); <-over }
}

// stillRuns returns which containers run, or "". deaf reports that the end of the grace period is waited for.
func stillRuns(p store.Pod, waits func(pod.ContainerStatus) bool) (which string, deaf bool) {
	st, err := p.Status()
	if err != nil || !p.Alive() {
		return "", false
	}
	plan, err := p.Plan()
	if err != nil {
		plan = &pod.Plan{}
	}
	var names, reasons []string
	for _, list := range [][]pod.ContainerStatus{st.InitContainers, st.Containers, st.Ephemeral} {
		for _, c := range list {
			if c.State.Running == nil || waits != nil && !waits(c) {
				continue
			}
			names = append(names, c.Name)
			if sig := unhandledSignal(p, plan, c); sig != "" {
				reasons = append(reasons, fmt.Sprintf("the first process of %s has no handler for %s", c.Name, sig))
			}
		}
	}
	switch len(names) {
	case 0:
		return "", false
	case 1:
		which = "container " + names[0] + " still runs"
	default:
		which = "containers " + strings.Join(names, ", ") + " still run"
	}
	if len(reasons) > 0 {
		which += ": " + strings.Join(reasons, ", ")
	}
	return which, len(reasons) > 0
}

// unhandledSignal returns the stop signal of a container whose first process does not handle it, so that only
// SIGKILL ends it; "" for others, and if it is SIGKILL. A container with a preStop hook waits for the hook first.
func unhandledSignal(p store.Pod, plan *pod.Plan, st pod.ContainerStatus) string {
	c, ok := plan.Container(st.Name)
	if !ok || c.PreStop != nil || plan.ShareProcessNamespace || plan.HostPID {
		return ""
	}
	name := cmp.Or(strings.ToUpper(c.StopSignal), "SIGTERM")
	if !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	sig := unix.SignalNum(name)
	if sig == 0 || sig == unix.SIGKILL { // 0: a number, or a real-time signal
		return ""
	}
	file, err := p.InitProcFile(st.Name, st.RestartCount, "status")
	if err != nil {
		return ""
	}
	if handles, err := procfs.Handles(file, sig); err != nil || handles {
		return ""
	}
	return name
}
