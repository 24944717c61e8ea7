package lifecycle

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// output returns the actions since the last output with the requested details between them, then
// one line on the pod, then one line on each container.
func (w *world) output() string {
	var b strings.Builder
	for _, line := range w.told {
		b.WriteString(line + "\n")
	}
	w.told = nil
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
	return b.String()
}

func readyText(c pod.ContainerStatus) string {
	switch {
	case c.Ready && c.Started:
		return "started, ready"
	case c.Ready:
		return "ready"
	case c.Unhealthy:
		return "started, unhealthy"
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

// show adds details about the current state to the output.
func (w *world) show(what string) {
	s := Status(&w.plan, &w.seen, w.now())
	if what == "events" {
		w.printf("%-7s events", w.at)
		for _, e := range w.seen.Events.Events {
			w.printf("  %-7s %s %s x%d %s to %s: %s", e.Type, e.Reason, e.Container, e.Count, since(e.First), since(e.Last), e.Message)
		}
		return
	}
	w.printf("%-7s %s: %s, start time %s", w.at, what, s.Phase, since(s.StartTime))
	if what == "conditions" {
		for _, c := range s.Conditions {
			w.printf("  %s=%s since %s %s %s", c.Type, c.Status, since(c.LastTransition), c.Reason, c.Message)
		}
		return
	}
	if s.Deletion != nil {
		w.printf("  deletion at %s, grace %ds", since(s.Deletion.At), s.Deletion.GraceSeconds)
	}
	for _, c := range append(append([]pod.ContainerStatus(nil), s.InitContainers...), s.Containers...) {
		image := ""
		if c.Image != firstImage {
			image = ", image " + c.Image
		}
		w.printf("  %s: %q%s", c.Name, c.ContainerID, image)
		w.printf("    state %s", detail(c.State))
		w.printf("    last  %s", detail(c.LastState))
	}
}

func (w *world) printf(format string, args ...any) {
	w.told = append(w.told, strings.TrimRight(fmt.Sprintf(format, args...), " "))
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
