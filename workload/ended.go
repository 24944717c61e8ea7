package workload

import (
	"slices"
	"time"

	"github.com/podrun/podrun/pod"
)

// The delays before a pod that failed is followed by another: none after the first, then
// as between the restarts of a container (pkg/kubelet).
const (
	firstDelay = 10 * time.Second
	lastDelay  = 5 * time.Minute
	// soon: a pod that lived for longer did not fail at once.
	soon = 10 * time.Minute
	// together: what fails within this time fails for one reason.
	together = time.Second
)

// delay is how long to wait after so many failures in a row.
func delay(failures int) time.Duration {
	if failures < 2 {
		return 0
	}
	return min(firstDelay<<min(failures-2, 10), lastDelay)
}

// ended deals with pods that have failed, or have ended though they should not. The last
// one stays for its logs; a StatefulSet and a DaemonSet need the place.
func (d *decider) ended() {
	var over []*Pod
	for i := range d.pods {
		if p := &d.pods[i]; p.Phase.Terminal() && !p.Stopping {
			over = append(over, p)
		}
	}
	slices.SortStableFunc(over, func(a, b *Pod) int { return a.Ended.Compare(b.Ended) })
	for i, p := range over {
		if !slices.Contains(d.State.Counted, p.UID) {
			d.State.Counted = append(d.State.Counted, p.UID)
			d.failed(p)
		}
		keep := i == len(over)-1 && !p.Ended.IsZero() && (d.spec.Kind == pod.KindDeployment || d.spec.Kind == pod.KindReplicaSet)
		if !keep && !p.Alive {
			d.remove(p)
		}
	}
}

// failed counts a pod that has failed. One whose end nobody saw went down with the
// machine, and several that fail beside each other had one reason.
func (d *decider) failed(p *Pod) {
	s := &d.State
	if p.Ended.IsZero() || p.Created.Before(s.FailedAt) && p.Ended.Sub(s.FailedAt) < together {
		return
	}
	if p.Ended.Sub(p.Created) >= soon {
		s.Failures = 0
	}
	s.Failures++
	s.FailedAt = p.Ended
}

// held says whether no pod is to be made yet, and sees to it that it is made in time.
func (d *decider) held() bool {
	held := false
	for _, until := range []time.Time{
		after(d.State.FailedAt, delay(d.State.Failures)),
		after(d.State.RefusedAt, delay(d.State.Refusals+1)),
	} {
		if d.now.Before(until) {
			d.wakeAt(until)
			held = true
		}
	}
	return held
}

func after(t time.Time, wait time.Duration) time.Time {
	if wait == 0 {
		return time.Time{}
	}
	return t.Add(wait)
}

// Refuse notes that a pod could not be made, and why: it is tried again, later each time.
func (s *State) Refuse(why string, now time.Time) {
	s.Refused, s.RefusedAt = why, now
	s.Refusals++
}

// Made notes that a pod was made.
func (s *State) Made() { s.Refused, s.Refusals, s.RefusedAt = "", 0, time.Time{} }
