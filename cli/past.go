package cli

import (
	"fmt"
	"time"

	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/pod"
)

// past is a pod of which no process is left, and that is to go on: with its identity, its
// volumes on disk, its logs and its restart counts.
type past struct {
	uid     string
	created time.Time
}

// recall looks at what is left of a pod that does not run. One that was lost, with the
// machine or without, goes on if its manifest is the same, as a kubelet's pod does. One that
// has ended is run anew; but not by a unit that the machine's start has begun.
func (l *launch) recall(p *upPod) error {
	if !p.place.Exists() {
		return nil
	}
	text, err := p.place.Manifest()
	if err != nil {
		return nil // half removed: it makes way
	}
	old, err := manifest.Unmarshal(text)
	if err != nil {
		return nil
	}
	d, err := manifest.Compare(old, p.object.Pod)
	if err != nil || !d.None() {
		return err
	}
	plan, err := p.place.Plan()
	if err != nil || plan.UID == "" {
		return nil
	}
	st, err := p.place.Status()
	if err == nil && st.Deleting {
		return nil
	}
	ended := err == nil && st.Phase.Terminal() && st.Reason != pod.ReasonTerminated
	switch lost := plan.RestartPolicy == pod.RestartNever && hasRun(p.place, plan); {
	case !ended && !lost:
		p.past = &past{plan.UID, old.CreationTimestamp.Time}
		fmt.Fprintf(l.front.err, "podrun: pod %s goes on: %s\n", p.place.Name, whyLost(p.place))
	case l.service != nil && rebooted(p.place):
		p.plan, p.running, p.started = plan, true, true
		fmt.Fprintf(l.front.err, "podrun: pod %s had ended before the machine was restarted: it is not run again\n", p.place.Name)
	}
	return nil
}

// hasRun says whether a container of a pod was ever made.
func hasRun(p store.Pod, plan *pod.Plan) bool {
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
	runs, err := crilog.Instances(p.LogDir(container))
	if err != nil || len(runs) == 0 {
		return -1
	}
	return runs[len(runs)-1]
}

// rebooted says whether the machine was restarted since a pod's processes lived: what they
// said last is gone with it, or of another run of the machine.
func rebooted(p store.Pod) bool {
	st, err := p.Status()
	return err != nil || st.BootID != "" && st.BootID != store.BootID()
}

func whyLost(p store.Pod) string {
	if rebooted(p) {
		return "the machine was restarted"
	}
	return "its processes were killed from outside"
}
