package manifest

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podrun/podrun/pod"
)

// Columns is one line of `podrun ps`, with kubectl's columns and strings.
type Columns struct {
	Name     string
	Ready    string // 1/2
	Status   string // Running, Init:0/2, CrashLoopBackOff, …
	Restarts string // 3 (5m ago)
	Age      string // 12m
	IP, Node string // wide; <none> where there is none
}

// Row sums a pod up in one line, as kubectl get does (printPod in
// pkg/printers/internalversion of Kubernetes). A nil status is as for Render.
func Row(p *corev1.Pod, st *pod.Status, now time.Time) Columns {
	p = Render(p, st)
	s := newSummary(p)
	initializing := s.inits()
	if !initializing || conditionTrue(&p.Status, corev1.PodInitialized) {
		s.apps()
	}
	if p.Status.Phase == corev1.PodFailed && p.Status.Reason == pod.ReasonEvicted {
		// kubectl shows the end of a container, which was not its own doing.
		s.reason = p.Status.Reason
	}
	if st != nil && st.Deleting && !st.Phase.Terminal() {
		s.reason = "Terminating"
	}
	count := strconv.Itoa(s.n)
	if s.n > 0 && !s.last.IsZero() {
		count += " (" + age(s.last, now) + " ago)"
	}
	born := p.CreationTimestamp.Time
	if born.IsZero() && p.Status.StartTime != nil {
		born = p.Status.StartTime.Time
	}
	return Columns{
		Name:     p.Name,
		Ready:    fmt.Sprintf("%d/%d", s.ready, s.total),
		Status:   s.reason,
		Restarts: count,
		Age:      age(born, now),
		IP:       cmp.Or(p.Status.PodIP, "<none>"),
		Node:     cmp.Or(p.Spec.NodeName, "<none>"),
	}
}

// age says how long ago a time was. A clock that was set back makes nothing
// younger than new.
func age(since, now time.Time) string {
	if since.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(max(now.Sub(since), 0))
}

// summary is what a line is made of.
type summary struct {
	pod          *corev1.Pod
	sidecars     map[string]bool
	ready, total int
	reason       string
	restarts
	ofSidecars restarts // of those that inits saw
}

// restarts counts restarts, and remembers the last.
type restarts struct {
	n    int
	last time.Time
}

func (r *restarts) add(c corev1.ContainerStatus) {
	r.n += int(c.RestartCount)
	if t := c.LastTerminationState.Terminated; t != nil && t.FinishedAt.After(r.last) {
		r.last = t.FinishedAt.Time
	}
}

func newSummary(p *corev1.Pod) *summary {
	s := &summary{pod: p, sidecars: map[string]bool{}, total: len(p.Spec.Containers), reason: string(p.Status.Phase)}
	if p.Status.Reason != "" {
		s.reason = p.Status.Reason
	}
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; sidecar(c) {
			s.sidecars[c.Name] = true
			s.total++
		}
	}
	return s
}

// inits looks at the init containers, up to the first that is not done, and says
// whether there is one.
func (s *summary) inits() (initializing bool) {
	for i, c := range s.pod.Status.InitContainerStatuses {
		s.add(c)
		if s.sidecars[c.Name] {
			s.ofSidecars.add(c)
		}
		t, w := c.State.Terminated, c.State.Waiting
		switch {
		case t != nil && t.ExitCode == 0:
			continue
		case s.sidecars[c.Name] && c.Started != nil && *c.Started:
			if c.Ready {
				s.ready++
			}
			continue
		case t != nil:
			s.reason = "Init:" + ended(t)
		case w != nil && w.Reason != "" && w.Reason != "PodInitializing":
			s.reason = "Init:" + w.Reason
		default:
			s.reason = fmt.Sprintf("Init:%d/%d", i, len(s.pod.Spec.InitContainers))
		}
		return true
	}
	return false
}

// apps looks at the app containers, from the last to the first: the first speaks
// last. Restarts of init containers that are done no longer count.
func (s *summary) apps() {
	s.restarts = s.ofSidecars
	running, failed := false, ""
	for i := len(s.pod.Status.ContainerStatuses) - 1; i >= 0; i-- {
		c := s.pod.Status.ContainerStatuses[i]
		s.add(c)
		switch t, w := c.State.Terminated, c.State.Waiting; {
		case w != nil && w.Reason != "":
			s.reason = w.Reason
		case t != nil:
			s.reason = ended(t)
			if t.ExitCode != 0 {
				failed = s.reason
			}
		case c.Ready && c.State.Running != nil:
			running = true
			s.ready++
		}
	}
	if s.reason != "Completed" {
		return
	}
	switch {
	case running && conditionTrue(&s.pod.Status, corev1.PodReady):
		s.reason = "Running"
	case failed != "":
		s.reason = failed
	case running:
		s.reason = "NotReady"
	}
}

// ended says in a word how a container ended.
func ended(t *corev1.ContainerStateTerminated) string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Signal != 0:
		return fmt.Sprintf("Signal:%d", t.Signal)
	default:
		return fmt.Sprintf("ExitCode:%d", t.ExitCode)
	}
}

func conditionTrue(st *corev1.PodStatus, kind corev1.PodConditionType) bool {
	for _, c := range st.Conditions {
		if c.Type == kind {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
