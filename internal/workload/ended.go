package workload

import (
	"slices"
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// The delays before a failed pod is replaced: none after the first failure, then as between the
// restarts of a container (pkg/kubelet).
const (
	firstDelay = 10 * time.Second
	lastDelay  = 5 * time.Minute
	// stableAfter: a pod that ran longer resets the count of failures.
	stableAfter = 10 * time.Minute
	// sameFailure: failures within this time count as one.
	sameFailure = time.Second
)

// delay returns the wait after a number of consecutive failures.
func delay(failures int) time.Duration {
	if failures < 2 {
		return 0
	}
	return min(firstDelay<<min(failures-2, 10), lastDelay)
}

// handleEndedPods handles pods that have failed, or have ended unexpectedly. The last one is kept for its
// logs, except for a StatefulSet and a DaemonSet, which need its name or place.
func (d *decider) handleEndedPods() {
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
		keep := i == len(over)-1 && !p.Ended.IsZero() && (d.spec.Kind == pod.KindDeployment || d.spec.Kind.IsReplicaSet())
		if !keep && !p.Alive {
			d.remove(p)
		}
	}
}

// failed counts a failed pod. A pod without an end time died with the machine, and does not count. Several
// pods that fail at the same time count as one failure.
func (d *decider) failed(p *Pod) {
	s := &d.State
	if p.Ended.IsZero() || p.Created.Before(s.FailedAt) && p.Ended.Sub(s.FailedAt) < sameFailure {
		return
	}
	if p.Ended.Sub(p.Created) >= stableAfter {
		s.Failures = 0
	}
	s.Failures++
	s.FailedAt = p.Ended
}

// mustWait reports whether no pod may be made yet, and schedules the next attempt.
func (d *decider) mustWait() bool {
	wait := false
	for _, until := range []time.Time{
		after(d.State.FailedAt, delay(d.State.Failures)),
		after(d.State.CreateFailedAt, delay(d.State.CreateFailures+1)),
	} {
		if d.now.Before(until) {
			d.wakeAt(until)
			wait = true
		}
	}
	return wait
}

func after(t time.Time, wait time.Duration) time.Time {
	if wait == 0 {
		return time.Time{}
	}
	return t.Add(wait)
}

// RecordCreateFailure records why a pod could not be made: the delay before the next attempt grows.
func (s *State) RecordCreateFailure(reason string, now time.Time) {
	s.CreateError, s.CreateFailedAt = reason, now
	s.CreateFailures++
}

// RecordCreated records that a pod was made.
func (s *State) RecordCreated() {
	s.CreateError, s.CreateFailures, s.CreateFailedAt = "", 0, time.Time{}
}
