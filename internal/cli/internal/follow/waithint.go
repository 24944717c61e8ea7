package follow

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/pod"
)

// hintWhileWaiting prints why a pod has not reached the goal, after a while and again when the reason
// changes, until end is called. The caller passes each new status to see.
func (r *Reporter) hintWhileWaiting(p *podup.Target, to Goal, after time.Duration, bounded bool) (see func(*pod.Status), end func()) {
	var mu sync.Mutex
	var last *pod.Status
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(after)
		defer tick.Stop()
		lastReason, more := "", "; Ctrl-C leaves it unchanged, --timeout gives up"
		if bounded {
			more = ""
		}
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			mu.Lock()
			reason := missingFor(last, to)
			mu.Unlock()
			if reason == "" || reason == lastReason {
				continue
			}
			lastReason = reason
			r.report(fmt.Sprintf("it is not %s yet: %s%s%s", to.Word, reason, lastProbeFailure(p, reason), more))
			more = ""
		}
	}()
	return func(st *pod.Status) {
		mu.Lock()
		defer mu.Unlock()
		last = st
	}, func() { close(done); <-over }
}

// missingFor returns what a pod lacks to reach the goal, from its conditions, or "".
func missingFor(st *pod.Status, to Goal) string {
	if st == nil || st.Deleting || st.Phase.Terminal() || to.Reached(st) {
		return ""
	}
	for _, kind := range []string{"Initialized", "Ready"} {
		i := slices.IndexFunc(st.Conditions, func(c pod.Condition) bool { return c.Type == kind && c.Status != "True" })
		if i >= 0 && st.Conditions[i].Message != "" {
			return st.Conditions[i].Message
		}
	}
	return strings.ToLower(string(st.Phase))
}

// lastProbeFailure returns the last probe message of a missing container, or "".
func lastProbeFailure(p *podup.Target, reason string) string {
	events, _ := p.Pod.Events() // without events there is nothing to add
	var last pod.Event
	for _, e := range events {
		if e.Reason == "Unhealthy" && !e.Last.Before(last.Last) && slices.Contains(strings.FieldsFunc(reason, isNameSeparator), e.Container) {
			last = e
		}
	}
	if last.Reason == "" {
		return ""
	}
	text, _, _ := strings.Cut(strings.TrimSpace(last.Message), "\n")
	return fmt.Sprintf(" (container %s: %s)", last.Container, strings.TrimSuffix(text, ":"))
}

// isNameSeparator reports whether a character cannot be part of a container's name.
func isNameSeparator(r rune) bool { return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') }
