package lifecycle

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/podrun/podrun/pod"
)

// output gives the actions since the last output, then one line on the pod, then
// one line on each container, then what was asked to be shown.
func (w *world) output() string {
	var b strings.Builder
	for _, line := range w.told {
		b.WriteString(line + "\n")
	}
	s := Status(&w.plan, &w.seen, w.now())
	fmt.Fprintf(&b, "%s: %s", w.at, s.Phase)
	if s.Reason != "" {
		fmt.Fprintf(&b, " %s %q", s.Reason, s.Message)
	}
	if s.Deleting {
		b.WriteString(", deleting")
	}
	if w.last.Wake != 0 {
		fmt.Fprintf(&b, ", wake at %s", w.last.Wake-bootBegin)
	}
	if w.last.Done {
		b.WriteString(", done")
	}
	b.WriteString("\n")
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, c := range append(append([]pod.ContainerStatus(nil), s.InitContainers...), s.Containers...) {
		fmt.Fprintf(tw, "  %s\t%s\t%s\trestarts %d\tlast %s\n",
			c.Name, stateText(c.State), readyText(c), c.RestartCount, stateText(c.LastState))
	}
	tw.Flush()
	for _, what := range w.show {
		w.more(&b, what, &s)
	}
	w.told, w.show = nil, nil
	return b.String()
}

func readyText(c pod.ContainerStatus) string {
	switch {
	case c.Ready && c.Started:
		return "started, ready"
	case c.Ready:
		return "ready"
	case c.Started:
		return "started"
	}
	return "-"
}

func stateText(s pod.State) string {
	switch {
	case s.Waiting != nil:
		return "Waiting:" + s.Waiting.Reason
	case s.Running != nil:
		return "Running"
	case s.Terminated != nil:
		return fmt.Sprintf("%s(%d)", s.Terminated.Reason, s.Terminated.ExitCode)
	}
	return "-"
}

func (w *world) more(b *strings.Builder, what string, s *pod.Status) {
	if what == "conditions" {
		for _, c := range s.Conditions {
			line := fmt.Sprintf("  %s=%s since %s %s %s", c.Type, c.Status, since(c.LastTransition), c.Reason, c.Message)
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
		return
	}
	fmt.Fprintf(b, "  start time %s\n", since(s.StartTime))
	for _, c := range append(append([]pod.ContainerStatus(nil), s.InitContainers...), s.Containers...) {
		fmt.Fprintf(b, "  %s: %q\n    state %s\n    last  %s\n", c.Name, c.ContainerID, detail(c.State), detail(c.LastState))
	}
}

func detail(s pod.State) string {
	switch {
	case s.Waiting != nil:
		return fmt.Sprintf("waiting %s %q", s.Waiting.Reason, s.Waiting.Message)
	case s.Running != nil:
		return fmt.Sprintf("running since %s", since(s.Running.StartedAt))
	case s.Terminated != nil:
		t := s.Terminated
		return fmt.Sprintf("terminated %s code %d signal %d from %s to %s %q %q",
			t.Reason, t.ExitCode, t.Signal, since(t.StartedAt), since(t.FinishedAt), t.ContainerID, t.Message)
	}
	return "-"
}

func since(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Sub(wallBegin).String()
}
