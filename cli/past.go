package cli

import (
	"fmt"
	"time"

	"github.com/podrun/podrun/cli/internal/reading"
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
	if err != nil || !d.Empty() {
		return err
	}
	plan, err := p.place.Plan()
	if err != nil || plan.UID == "" {
		return nil
	}
	st, err := p.place.Status()
	if err == nil && st.Deleting || p.place.Removing() {
		return nil
	}
	ended := err == nil && st.Phase.Terminal() && st.Reason != pod.ReasonTerminated
	switch lost := plan.RestartPolicy == pod.RestartNever && reading.HasRun(p.place, plan); {
	case !ended && !lost:
		p.past = &past{plan.UID, old.CreationTimestamp.Time}
		fmt.Fprintf(l.front.err, "podrun: pod %s goes on: %s\n", p.place.Name, reading.WhyLost(p.place))
	case l.service != nil && reading.Rebooted(p.place):
		p.plan, p.running, p.started = plan, true, true
		fmt.Fprintf(l.front.err, "podrun: pod %s had ended before the machine was restarted: it is not run again\n", p.place.Name)
	}
	return nil
}
