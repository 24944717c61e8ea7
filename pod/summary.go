package pod

import "fmt"

// Summary is a pod in a few words, in kubectl's terms.
type Summary struct {
	Ready, Total int
	Status       string // Running, Init:0/2, CrashLoopBackOff, …
	Restarts     int
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
// pkg/printers/internalversion of Kubernetes). The supervisor has no Kubernetes types;
// where there are some, manifest.Row says the same and more.
func Summarize(plan *Plan, st *Status) Summary {
	s := Summary{Total: len(plan.Containers), Status: string(st.Phase)}
	if st.Reason != "" {
		s.Status = st.Reason
	}
	sidecars := 0 // their restarts
	initializing := false
	for i, c := range plan.InitContainers {
		if c.Sidecar {
			s.Total++
		}
		if i >= len(st.InitContainers) {
			continue
		}
		cs := &st.InitContainers[i]
		if initializing {
			continue
		}
		s.Restarts += cs.RestartCount
		if c.Sidecar {
			sidecars += cs.RestartCount
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
		s.Restarts = sidecars
		s.apps(st)
	}
	if st.Phase == Failed && st.Reason == ReasonEvicted {
		s.Status = st.Reason // the containers' ends were not their own doing
	}
	if st.Deleting && !st.Phase.Terminal() {
		s.Status = "Terminating"
	}
	return s
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

// apps looks at the app containers; the first one with something to say wins.
func (s *Summary) apps(st *Status) {
	running, failed := false, ""
	for i := len(st.Containers) - 1; i >= 0; i-- {
		c := &st.Containers[i]
		s.Restarts += c.RestartCount
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			s.Status = c.State.Waiting.Reason
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
