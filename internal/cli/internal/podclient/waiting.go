package podclient

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
)

const (
	// waitingAfter is how long a stop may take before the user is informed of what it waits for;
	// waitingEvery is the interval of repetition.
	waitingAfter = time.Second
	waitingEvery = 10 * time.Second
)

// ReportWaiting prints the names of the containers that still run, after a while and then at intervals,
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
			if which := stillRuns(p, waits); which != "" {
				limit := ""
				if left := (stopTimeout(p, grace) - StopMargin - time.Since(began)).Round(time.Second); left > 0 {
					limit = fmt.Sprintf(", for up to %d s", left/time.Second)
				}
				fmt.Fprintf(out, "podrun: %s pod %s%s: %s\n", verb, p.Name, limit, which)
			}
		}
	}()
	return func() { close(done); <-over }
}

// stillRuns returns the names of the running containers, or "".
func stillRuns(p store.Pod, waits func(pod.ContainerStatus) bool) string {
	st, err := p.Status()
	if err != nil || !p.Alive() {
		return ""
	}
	var names []string
	for _, list := range [][]pod.ContainerStatus{st.InitContainers, st.Containers, st.Ephemeral} {
		for _, c := range list {
			if c.State.Running != nil && (waits == nil || waits(c)) {
				names = append(names, c.Name)
			}
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return "container " + names[0] + " still runs"
	}
	return "containers " + strings.Join(names, ", ") + " still run"
}
