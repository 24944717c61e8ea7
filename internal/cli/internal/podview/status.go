package podview

import (
	"errors"
	"io/fs"

	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
)

// StatusOf returns the current status of a pod. If its processes are gone and its supervisor has not
// recorded the end, it was killed: see lost.
func StatusOf(p store.Pod) (*pod.Status, error) {
	alive := p.Alive() // before the status: the last status is written before the processes end
	st, err := p.Status()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		st = &pod.Status{Version: pod.StatusVersion, Phase: pod.Pending}
	case err != nil:
		return nil, err
	}
	if !alive && !st.Phase.Terminal() {
		plan, err := p.Plan()
		if err != nil {
			return nil, err
		}
		st = lost(p, plan, st)
	}
	return st, nil
}

// IsLost reports whether a pod has no processes, and no end on record: they were killed, or the machine was restarted.
func IsLost(p store.Pod) bool {
	if !p.Exists() || p.Alive() {
		return false
	}
	st, err := p.Status()
	return err != nil || !st.Phase.Terminal()
}

const (
	lostReason  = "ContainerStatusUnknown" // the kubelet's reason
	lostMessage = "The container could not be located after the pod's processes had ended"
	// lostCode is the kubelet's exit code for a container that was lost.
	lostCode = 137
)

// lost returns the status of a pod whose processes were killed from outside or by a reboot: it has
// failed, and its containers' exit statuses are unknown.
func lost(p store.Pod, plan *pod.Plan, st *pod.Status) *pod.Status {
	out := *st
	out.Phase, out.ImagePull = pod.Failed, nil
	out.Message = WhyLost(p)
	if plan.RestartPolicy != pod.RestartNever || !HasRun(p, plan) {
		out.Message += "; podrun up resumes the pod"
	}
	end := func(have []pod.ContainerStatus, of []pod.Container) []pod.ContainerStatus {
		list := make([]pod.ContainerStatus, len(of))
		for i, c := range of {
			list[i] = pod.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: c.ImageID, RestartCount: max(latestRun(p, c.Name), 0)}
			if i < len(have) {
				list[i] = have[i]
			}
			gone(&list[i])
		}
		return list
	}
	out.InitContainers = end(st.InitContainers, plan.InitContainers)
	out.Containers = end(st.Containers, plan.Containers)
	out.Conditions = nil
	for _, c := range st.Conditions {
		if c.Type == "Ready" || c.Type == "ContainersReady" {
			c.Status, c.Reason = "False", "PodFailed"
		}
		out.Conditions = append(out.Conditions, c)
	}
	return &out
}

// gone marks a container as ended with an unknown exit status.
func gone(c *pod.ContainerStatus) {
	if c.State.Terminated != nil {
		return
	}
	end := &pod.Terminated{ExitCode: lostCode, Reason: lostReason, Message: lostMessage, ContainerID: c.ContainerID}
	if c.State.Running != nil {
		end.StartedAt = c.State.Running.StartedAt
	}
	c.State, c.Ready, c.Started = pod.State{Terminated: end}, false, false
}

// HasRun reports whether a container of a pod was ever created.
func HasRun(p store.Pod, plan *pod.Plan) bool {
	for _, list := range [][]pod.Container{plan.InitContainers, plan.Containers} {
		for i := range list {
			if latestRun(p, list[i].Name) >= 0 {
				return true
			}
		}
	}
	return false
}

// latestRun returns the number of a container's latest run that has a log, or -1.
func latestRun(p store.Pod, container string) int {
	runs, err := crilog.Attempts(p.LogDir(container))
	if err != nil || len(runs) == 0 {
		return -1
	}
	return runs[len(runs)-1]
}

// Rebooted reports whether the machine was rebooted since the pod's processes ran. Their last status is
// then lost, or is of an earlier boot.
func Rebooted(p store.Pod) bool {
	st, err := p.Status()
	return err != nil || st.BootID != "" && st.BootID != store.BootID()
}

// WhyLost returns what caused the loss of a pod, in words.
func WhyLost(p store.Pod) string {
	if Rebooted(p) {
		return "the machine was restarted"
	}
	return "its processes were killed from outside"
}
