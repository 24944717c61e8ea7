package lifecycle

import (
	"strings"
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// Storage is the state of the pod's disk use. It stays empty if the plan has no limit.
type Storage struct {
	Issued bool          `json:"issued,omitempty"` // MeasureStorage was issued and not answered yet
	Bytes  int64         `json:"bytes,omitempty"`  // at the last measurement
	Every  time.Duration `json:"every,omitempty"`  // how often it is measured
	Next   time.Duration `json:"next,omitempty"`   // CLOCK_BOOTTIME of the next measurement; 0: now
}

// The kubelet checks the limits every 10 s (monitoringInterval of its eviction manager), with
// figures of volumes up to a minute old (VolumeStatsAggPeriod). podrun measures less often what
// does not grow, so that the supervisor of a quiet pod can hibernate. The cost stays low, whatever
// the number of files.
const (
	measureFirst = 10 * time.Second
	measureLast  = 30 * time.Second
	measureShare = 50 // at most 1/measureShare of the time is spent on counting
)

// evictionGrace is the grace of an evicted pod (kubelet: immediateEvictionGracePeriodSeconds).
const evictionGrace = time.Second

// measure issues the next measurement, or waits for it.
func (d *decision) measure() {
	s := d.seen.Storage
	switch {
	case len(d.plan.Storage) == 0 || s.Issued:
	case d.now.Boot < s.Next:
		d.wakeAt(s.Next)
	default:
		d.do(MeasureStorage, "", 0)
	}
}

// measured applies a measurement.
func (o *Observed) measured(plan *pod.Plan, e Event) {
	s := &o.Storage
	if !s.Issued {
		return
	}
	s.Issued = false
	switch {
	case e.Bytes != s.Bytes, s.Every == 0:
		s.Every = measureFirst
	default:
		s.Every = min(2*s.Every, measureLast)
	}
	s.Bytes = e.Bytes
	s.Next = e.At.Boot + max(s.Every, measureShare*e.Took)
	if e.Message != "" && o.Ending == nil {
		o.Ending = &Ending{Cause: EndEvicted, Since: e.At, GraceEnd: e.At.Boot + evictionGrace, Reason: pod.ReasonEvicted, Message: e.Message}
	}
}

const eventFailedMount = "FailedMount" // kubelet: pkg/kubelet/events

// Delays before podrun tries again to make volumes: each is twice the previous one (kubelet:
// pkg/util/goroutinemap/exponentialbackoff).
const (
	mountRetry    = 500 * time.Millisecond
	maxMountRetry = 2*time.Minute + 2*time.Second
)

// volumesFailed applies the event that volumes could not be made: the sandbox is not made either, and the
// containers wait. If the sandbox is up, its volumes stay unchanged.
func (o *Observed) volumesFailed(e Event) {
	if o.Sandbox != SandboxCreating {
		return
	}
	o.Sandbox = SandboxNone
	if o.Ending != nil {
		o.Sandbox = SandboxDown
		return
	}
	wait := mountRetry
	for range o.VolumeFailures {
		wait = min(2*wait, maxMountRetry)
	}
	o.VolumeFailures++
	o.Retry = e.At.Boot + wait
}

// noteMounts records one event for each volume that could not be made.
func (o *Observed) noteMounts(e Event) {
	for line := range strings.Lines(e.Message) {
		o.note(e.At, pod.Warning, eventFailedMount, "", strings.TrimSuffix(line, "\n"))
	}
}
