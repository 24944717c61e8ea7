package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// narrator says on stderr what happens to a pod: its warnings, and containers that
// fail or wait for another attempt. Everything is said once.
type narrator struct {
	out io.Writer
	pod string

	mu   sync.Mutex // of what it has said
	said map[string]bool
}

func (n *narrator) status(st *pod.Status) {
	for _, w := range st.Warnings {
		n.say("warning: " + w)
	}
	if st.Deleting || st.Phase.Terminal() {
		return // containers end because they are told to, or the pod's end says it all
	}
	for _, list := range [][]pod.ContainerStatus{st.InitContainers, st.Containers} {
		for i := range list {
			if text := trouble(&list[i]); text != "" {
				n.say(text)
			}
		}
	}
}

func (n *narrator) say(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.said[text] {
		return
	}
	if n.said == nil {
		n.said = map[string]bool{}
	}
	n.said[text] = true
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if i == 0 {
			line = fmt.Sprintf("podrun: pod %s: %s", n.pod, report.Escape(line))
		} else {
			line = "  " + report.Escape(line)
		}
		fmt.Fprintln(n.out, line)
	}
}

func (n *narrator) hasSaid(text string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.said[text]
}

// trouble is what there is to say about a container, or "". The restart count is
// part of it, so that another failure is said again.
func trouble(c *pod.ContainerStatus) string {
	attempt := ""
	if c.RestartCount > 0 {
		attempt = fmt.Sprintf(" (restart %d)", c.RestartCount)
	}
	switch w, t := c.State.Waiting, c.State.Terminated; {
	case w != nil && !starting(w.Reason):
		// The kubelet's message names the container and the pod, which we have done.
		message, _, _ := strings.Cut(w.Message, " restarting failed container=")
		reason := w.Reason
		if _, cause, ok := strings.Cut(message, ": "+image.ErrImagePull+": "); ok && reason == image.ImagePullBackOff {
			reason, message = image.ErrImagePull, cause // which is said once
		}
		last := ""
		if t := c.LastState.Terminated; t != nil {
			last = " " + outcome(t) + ";"
		}
		return fmt.Sprintf("container %s%s%s waits: %s", c.Name, attempt, last, because(reason, message))
	case t != nil && t.ExitCode != 0:
		return fmt.Sprintf("container %s%s %s", c.Name, attempt, outcome(t))
	}
	return ""
}

// starting says whether a container with this reason is merely on its way.
func starting(reason string) bool {
	return reason == "" || reason == "PodInitializing" || reason == "ContainerCreating"
}

// outcome says how a container ended, and why, where it has said so.
func outcome(t *pod.Terminated) string { return with(ended(t), t.Message) }

// ended says how a container ended.
func ended(t *pod.Terminated) string {
	switch t.Reason {
	case "StartError", "ContainerCannotRun":
		return "cannot be started"
	case "", "Error", "Completed":
		return fmt.Sprintf("exited with code %d", t.ExitCode)
	}
	return fmt.Sprintf("ended with %s (exit code %d)", t.Reason, t.ExitCode)
}

func because(reason, message string) string {
	if reason == "" {
		return message
	}
	return with(reason, message)
}

func with(text, message string) string {
	if message = strings.TrimSpace(message); message == "" {
		return text
	}
	return text + ": " + message
}

// failure is the error of a pod that did not succeed, or nil: which container was
// to blame, and why, unless that was said when it happened.
func (n *narrator) failure(p store.Pod, st *pod.Status) error {
	switch {
	case st.Deleting:
		return report.New(report.Failure, "", "pod %s was stopped by another podrun", p.Name)
	case st.Phase == pod.Succeeded:
		return nil
	}
	why := because(st.Reason, st.Message)
	if c := culprit(st); c != nil && why == "" {
		how := outcome
		if n.hasSaid(trouble(c)) {
			how = ended
		}
		why = fmt.Sprintf("container %s %s", c.Name, how(c.State.Terminated))
	}
	return report.New(report.Failure, fmt.Sprintf("podrun logs %s shows its output, podrun down %s removes it", p.Name, p.Name),
		"pod %s failed: %s", p.Name, why)
}

// culprit is the container whose end made the pod fail, or nil.
func culprit(st *pod.Status) *pod.ContainerStatus {
	for _, list := range [][]pod.ContainerStatus{st.InitContainers, st.Containers} {
		for i := range list {
			if t := list[i].State.Terminated; t != nil && t.ExitCode != 0 {
				return &list[i]
			}
		}
	}
	return nil
}
