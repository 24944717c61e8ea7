package cli

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/podrun/podrun/pod"
)

// stillAfter is how long a pod is waited for before the user is told what for, and how
// often is looked whether it is something else.
const stillAfter = 10 * time.Second

// still says what a pod is waited for, when that takes a while and whenever it is something
// else, until end is called. see takes its latest status.
func (n *narrator) still(p *upPod, to arrival, after time.Duration, bounded bool) (see func(*pod.Status), end func()) {
	var mu sync.Mutex
	var last *pod.Status
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(after)
		defer tick.Stop()
		said, more := "", "; Ctrl-C leaves it as it is, --timeout gives up"
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
			why := lacks(last, to)
			mu.Unlock()
			if why == "" || why == said {
				continue
			}
			said = why
			n.say(fmt.Sprintf("it is not %s yet: %s%s%s", to.word, why, unhealthy(p, why), more))
			more = ""
		}
	}()
	return func(st *pod.Status) {
		mu.Lock()
		defer mu.Unlock()
		last = st
	}, func() { close(done); <-over }
}

// lacks is what a pod lacks to have come so far, in the words of its conditions, or "".
func lacks(st *pod.Status, to arrival) string {
	if st == nil || st.Deleting || st.Phase.Terminal() || to.at(st) {
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

// unhealthy is what a probe has said last of a container that is missing, or "".
func unhealthy(p *upPod, why string) string {
	events, _ := p.place.Events() // without them nothing can be added
	var last pod.Event
	for _, e := range events {
		if e.Reason == "Unhealthy" && !e.Last.Before(last.Last) && slices.Contains(strings.FieldsFunc(why, notInNames), e.Container) {
			last = e
		}
	}
	if last.Reason == "" {
		return ""
	}
	text, _, _ := strings.Cut(strings.TrimSpace(last.Message), "\n")
	return fmt.Sprintf(" (container %s: %s)", last.Container, strings.TrimSuffix(text, ":"))
}

// notInNames is about the characters of containers' names.
func notInNames(r rune) bool { return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') }
