package pod

import (
	"fmt"
	"time"
)

// Summary is a pod in a few words, in kubectl's terms.
type Summary struct {
	Ready, Total int
	Status       string // Running, Init:0/2, CrashLoopBackOff, …
	Restarts     int
	Restarted    time.Time // the end of the instance before the newest; zero if there was none
}

// String is "1/2 CrashLoopBackOff, 3 restarts".
func (s Summary) String() string {
	text := fmt.Sprintf("%d/%d %s", s.Ready, s.Total, s.Status)
	switch s.Restarts {
	case 0:
		return text
	case 1:
		return text + ", 1 restart"
	}
	return fmt.Sprintf("%s, %d restarts", text, s.Restarts)
}

// Summarize sums a pod up as kubectl get does (printPod in
// pkg/printers/internalversion of Kubernetes). Of the plan it asks for the containers' names,
// and which of them are sidecars; of a container that the status does not have nothing is known.
func Summarize(plan *Plan, st *Status) Summary {
	s := Summary{Total: len(plan.Containers), Status: string(st.Phase)}
	if st.Reason != "" {
		s.Status = st.Reason
	}
	var sidecars Summary // their restarts
	initializing := false
	for i, c := range plan.InitContainers {
		if c.Sidecar {
			s.Total++
		}
		if initializing {
			continue
		}
		cs := named(st.InitContainers, i, c.Name)
		s.restarted(cs)
		if c.Sidecar {
			sidecars.restarted(cs)
		}
		switch {
		case cs.State.Terminated != nil && cs.State.Terminated.ExitCode == 0:
		case c.Sidecar && cs.Started:
			if cs.Ready {
				s.Ready++
			}
		default:
			initializing = true
			s.Status = "Init:" + initState(cs, i, len(plan.InitContainers))
		}
	}
	if !initializing || st.condition("Initialized") {
		s.Restarts, s.Restarted = sidecars.Restarts, sidecars.Restarted // of those that are done no longer count
		s.apps(plan, st)
	}
	if st.Phase == Failed && st.Reason == ReasonEvicted {
		s.Status = st.Reason // kubectl shows the end of a container, which was not its own doing
	}
	if st.Deleting && !st.Phase.Terminal() {
		s.Status = "Terminating"
	}
	return s
}

// named is a container's status, which is most often the i-th.
func named(known []ContainerStatus, i int, name string) *ContainerStatus {
	if i < len(known) && known[i].Name == name {
		return &known[i]
	}
	for i := range known {
		if known[i].Name == name {
			return &known[i]
		}
	}
	return &ContainerStatus{Name: name}
}

// restarted counts a container's restarts, and remembers the last.
func (s *Summary) restarted(c *ContainerStatus) {
	s.Restarts += c.RestartCount
	if t := c.LastState.Terminated; t != nil && t.FinishedAt.After(s.Restarted) {
		s.Restarted = t.FinishedAt
	}
}

// FirstReason is why a container waits of which nothing is known yet. The kubelet says the
// first of these for every container of a pod with init containers.
func FirstReason(initContainers int) string {
	if initContainers > 0 {
		return "PodInitializing"
	}
	return "ContainerCreating"
}

// initState is what keeps the pod from being initialized.
func initState(c *ContainerStatus, i, n int) string {
	switch w, t := c.State.Waiting, c.State.Terminated; {
	case t != nil:
		return ending(t)
	case w != nil && w.Reason != "" && w.Reason != "PodInitializing":
		return w.Reason
	}
	return fmt.Sprintf("%d/%d", i, n)
}

// apps looks at the app containers, from the last to the first: the first with something
// to say wins.
func (s *Summary) apps(plan *Plan, st *Status) {
	running, failed := false, ""
	for i := len(plan.Containers) - 1; i >= 0; i-- {
		c := named(st.Containers, i, plan.Containers[i].Name)
		s.restarted(c)
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			s.Status = c.State.Waiting.Reason
		case c.State == (State{}):
			s.Status = FirstReason(len(plan.InitContainers))
		case c.State.Terminated != nil:
			s.Status = ending(c.State.Terminated)
			if c.State.Terminated.ExitCode != 0 {
				failed = s.Status
			}
		case c.Ready && c.State.Running != nil:
			running = true
			s.Ready++
		}
	}
	if s.Status != "Completed" {
		return
	}
	switch {
	case running && st.condition("Ready"):
		s.Status = "Running"
	case failed != "":
		s.Status = failed
	case running:
		s.Status = "NotReady"
	}
}

func ending(t *Terminated) string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Signal != 0:
		return fmt.Sprintf("Signal:%d", t.Signal)
	}
	return fmt.Sprintf("ExitCode:%d", t.ExitCode)
}

func (st *Status) condition(name string) bool {
	for _, c := range st.Conditions {
		if c.Type == name {
			return c.Status == "True"
		}
	}
	return false
}

// Ready says whether the pod's Ready condition is true.
func (st *Status) Ready() bool { return st.condition("Ready") }
