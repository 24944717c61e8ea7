// Package follow waits for pods and workloads, and reports what happens to them meanwhile.
package follow

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/dirwatch"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// Reporter reports on stderr what happens to a pod: its warnings, and containers that fail or wait for
// another attempt. It reports everything once.
type Reporter struct {
	Out io.Writer
	Pod string

	mu       sync.Mutex // protects what was reported
	reported map[string]bool
}

// Status reports the warnings and failed containers of a status.
func (r *Reporter) Status(st *pod.Status) {
	for _, w := range st.Warnings {
		r.report("warning: " + w)
	}
	if st.Deleting || st.Phase.Terminal() {
		return // containers end because they are stopped, or the pod's end covers it
	}
	for _, list := range [][]pod.ContainerStatus{st.InitContainers, st.Containers} {
		for i := range list {
			if text := problem(&list[i]); text != "" {
				r.report(text)
			}
		}
	}
}

func (r *Reporter) report(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reported[text] {
		return
	}
	if r.reported == nil {
		r.reported = map[string]bool{}
	}
	r.reported[text] = true
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if i == 0 {
			line = fmt.Sprintf("podrun: pod %s: %s", r.Pod, report.Escape(line))
		} else {
			line = "  " + report.Escape(line)
		}
		fmt.Fprintln(r.Out, line)
	}
}

func (r *Reporter) hasReported(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reported[text]
}

// problem returns the problem of a container, or "". It includes the restart count, so that another
// failure is reported again.
func problem(c *pod.ContainerStatus) string {
	attempt := ""
	if c.RestartCount > 0 {
		attempt = fmt.Sprintf(" (restart %d)", c.RestartCount)
	}
	switch w, t := c.State.Waiting, c.State.Terminated; {
	case w != nil && !starting(w.Reason):
		// The kubelet's message names the container and the pod, which are already printed.
		message, _, _ := strings.Cut(w.Message, " restarting failed container=")
		reason := w.Reason
		if _, cause, ok := strings.Cut(message, ": "+image.ErrImagePull+": "); ok && reason == image.ImagePullBackOff {
			reason, message = image.ErrImagePull, cause // the cause is reported once
		}
		last := ""
		if t := c.LastState.Terminated; t != nil {
			last = " " + exitTextWithMessage(t) + ";"
		}
		return fmt.Sprintf("container %s%s%s waits: %s", c.Name, attempt, last, withReason(reason, message))
	case t != nil && t.ExitCode != 0:
		return fmt.Sprintf("container %s%s %s", c.Name, attempt, exitTextWithMessage(t))
	}
	return ""
}

// starting reports whether this reason is a normal step of a container's start.
func starting(reason string) bool {
	return reason == "" || reason == "PodInitializing" || reason == "ContainerCreating"
}

// exitTextWithMessage returns how a container ended, and its termination message in one line, if any.
func exitTextWithMessage(t *pod.Terminated) string {
	return withMessage(podview.ExitText(t), oneLine(t.Message))
}

// maxMessage is the largest number of characters of a termination message that is shown.
const maxMessage = 200

// oneLine returns a termination message in one line. Of a long one it returns the last line: the end of a container's
// log, which may be the message, has the cause last.
func oneLine(message string) string {
	lines := strings.FieldsFunc(message, func(r rune) bool { return r == '\n' || r == '\r' })
	all := strings.Join(lines, "; ")
	if len([]rune(all)) <= maxMessage {
		return all
	}
	last := []rune(strings.TrimSpace(lines[len(lines)-1]))
	if len(last) > maxMessage {
		last = append(last[:maxMessage], '…')
	}
	return string(last) + " (podrun logs and podrun describe show more)"
}

func withReason(reason, message string) string {
	if reason == "" {
		return message
	}
	return withMessage(reason, message)
}

func withMessage(text, message string) string {
	if message = strings.TrimSpace(message); message == "" {
		return text
	}
	return text + ": " + message
}

// Failure returns the error of a pod that did not succeed, or nil. It names the failed container and the
// reason, unless that was reported when it happened.
func (r *Reporter) Failure(p store.Pod, st *pod.Status) error {
	switch {
	case st.Deleting:
		return report.New(report.Failure, "", "pod %s was stopped by another podrun command", p.Name)
	case st.Phase == pod.Succeeded:
		return nil
	}
	reason := withReason(st.Reason, st.Message)
	if c := podview.FailedContainer(st); c != nil && reason == "" {
		how := exitTextWithMessage
		if r.hasReported(problem(c)) {
			how = podview.ExitText
		}
		reason = fmt.Sprintf("container %s %s", c.Name, how(c.State.Terminated))
	}
	return report.New(report.Failure, fmt.Sprintf("podrun logs %s shows its output, podrun down %s removes it", p.Name, p.Name),
		"pod %s failed: %s", p.Name, reason)
}

// failedMount is the reason of events about volumes that are not available (kubelet: pkg/kubelet/events).
const failedMount = "FailedMount"

// mountsAfter is how long to wait before checking whether a pod lacks a volume. Most pods run by then,
// and checking reads the pod's files at every change. A missing volume is retried for longer.
const mountsAfter = 200 * time.Millisecond

// WatchMounts prints why volumes of a pod are not available, until the returned function is called. No
// container waits for them yet, so the reason is not in the status but in events. Problems that a running
// pod has overcome are not printed.
func (r *Reporter) WatchMounts(p *podup.Target) (end func()) {
	var began time.Time
	if st, err := p.Pod.Status(); p.RanBefore() && (err != nil || st.Phase != pod.Pending) {
		began = time.Now()
	}
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-time.After(mountsAfter):
		case <-done:
			return
		}
		watcher := dirwatch.Watch(p.Pod.RuntimeDir())
		defer watcher.Close()
		reader := p.Pod.EventReader()
		for {
			events, err := reader.ReadNew() // the directory has other changes too
			if err == nil {                 // otherwise the pod is going, or has no events yet
				r.mountEvents(events, began)
			}
			select {
			case <-watcher.Any():
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-over }
}

func (r *Reporter) mountEvents(events []pod.Event, since time.Time) {
	for _, e := range events {
		if e.Reason == failedMount && !e.Last.Before(since) {
			r.report("a volume is not available: " + withMessage(e.Reason, e.Message))
		}
	}
}
