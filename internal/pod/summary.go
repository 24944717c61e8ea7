package pod

import (
	"fmt"
	"time"
)

// Summary is a short summary of a pod, in kubectl's terms.
type Summary struct {
	Ready, Total int
	Status       string // Running, Init:0/2, CrashLoopBackOff, …
	Restarts     int
	Restarted    time.Time // when the previous run ended; zero: there was none
}

// String returns a text such as "1/2 CrashLoopBackOff, 3 restarts".
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

// Summarize returns a pod's summary as kubectl get prints it (printPod in
// pkg/printers/internalversion of Kubernetes). Of the plan it reads the containers' names and which
// of them are sidecars. A container missing in the status is in an unknown state.
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
		s.Restarts, s.Restarted = sidecars.Restarts, sidecars.Restarted // restarts of finished init containers no longer count
		s.apps(plan, st)
	}
	if st.Phase == Failed && st.Reason == ReasonEvicted {
		s.Status = st.Reason // kubectl prints the reason of a container that the eviction ended
	}
	if st.Deleting && !st.Phase.Terminal() {
		s.Status = "Terminating"
	}
	return s
}

// named returns a container's status, usually the i-th.
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

// restarted adds a container's restarts, and keeps the time of the last.
func (s *Summary) restarted(c *ContainerStatus) {
	s.Restarts += c.RestartCount
	if t := c.LastState.Terminated; t != nil && t.FinishedAt.After(s.Restarted) {
		s.Restarted = t.FinishedAt
	}
}

// FirstReason returns the reason of a waiting container without a status: PodInitializing in a pod with
// init containers, else ContainerCreating, as in the kubelet.
func FirstReason(initContainers int) string {
	if initContainers > 0 {
		return "PodInitializing"
	}
	return "ContainerCreating"
}

// initState returns the status of the init container that blocks the initialization.
func initState(c *ContainerStatus, i, n int) string {
	switch w, t := c.State.Waiting, c.State.Terminated; {
	case t != nil:
		return ending(t)
	case w != nil && w.Reason != "" && w.Reason != "PodInitializing":
		return w.Reason
	}
	return fmt.Sprintf("%d/%d", i, n)
}

// apps reads the app containers, from the last to the first: the first with a reason counts.
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

// Ready reports whether the pod's Ready condition is True.
func (st *Status) Ready() bool { return st.condition("Ready") }

// AllStarted reports whether every app container has been started.
func (st *Status) AllStarted() bool {
	if st.Phase != Running {
		return false
	}
	for _, c := range st.Containers {
		if c.State.Running == nil && !wasRunning(c.State.Terminated) && !wasRunning(c.LastState.Terminated) {
			return false
		}
	}
	return true
}

// wasRunning reports whether a container that has ended ever ran.
func wasRunning(t *Terminated) bool { return t != nil && !t.StartedAt.IsZero() }
