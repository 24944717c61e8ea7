package podview

import (
	"errors"
	"io/fs"

	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// StatusOf is what is known of a pod now. A pod whose processes are gone without
// its supervisor having said so has been killed: see lost.
func StatusOf(p store.Pod) (*pod.Status, error) {
	alive := p.Alive() // first: the last status is written before the processes end
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

const (
	lostReason  = "ContainerStatusUnknown" // the kubelet's word for it
	lostMessage = "The container could not be located when the pod's processes were found gone"
	// lostCode is what the kubelet gives a container that it lost.
	lostCode = 137
)

// lost is the status of a pod whose processes were killed from outside or went
// down with the machine: it has failed, and nobody saw its containers end.
func lost(p store.Pod, plan *pod.Plan, st *pod.Status) *pod.Status {
	out := *st
	out.Phase, out.Awaits = pod.Failed, nil
	out.Message = WhyLost(p)
	if plan.RestartPolicy != pod.RestartNever || !HasRun(p, plan) {
		out.Message += "; podrun up goes on with the pod"
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

// gone makes a container one that ended unseen.
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

// HasRun says whether a container of a pod was ever made.
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

// latestRun is the number of a container's latest run, of which there is a log, or -1.
func latestRun(p store.Pod, container string) int {
	runs, err := crilog.Attempts(p.LogDir(container))
	if err != nil || len(runs) == 0 {
		return -1
	}
	return runs[len(runs)-1]
}

// Rebooted says whether the machine was restarted since a pod's processes lived: what they
// said last is gone with it, or of another run of the machine.
func Rebooted(p store.Pod) bool {
	st, err := p.Status()
	return err != nil || st.BootID != "" && st.BootID != store.BootID()
}

// WhyLost says in words what a pod was lost with.
func WhyLost(p store.Pod) string {
	if Rebooted(p) {
		return "the machine was restarted"
	}
	return "its processes were killed from outside"
}
