package lifecycle

import (
	"time"

	"github.com/podrun/podrun/pod"
)

// Storage is what is known of what the pod has on disk. It stays empty where the
// plan has no limit.
type Storage struct {
	Asked bool          `json:"asked,omitempty"` // MeasureStorage was issued, and is not answered
	Bytes int64         `json:"bytes,omitempty"` // at the last measurement
	Every time.Duration `json:"every,omitempty"` // how often it is measured
	Next  time.Duration `json:"next,omitempty"`  // Boot time of the next measurement; 0: now
}

// The kubelet looks at the limits every 10 s (monitoringInterval of its eviction
// manager), at figures of volumes that are up to a minute old
// (VolumeStatsAggPeriod). What does not grow is looked at less often, so that a
// quiet pod can doze; and counting must cost next to nothing, however many files
// there are.
const (
	measureFirst = 10 * time.Second
	measureLast  = 30 * time.Second
	measureShare = 50 // of this much time, one part may go into counting
)

// evictionGrace is what an evicted pod has to end
// (kubelet: immediateEvictionGracePeriodSeconds).
const evictionGrace = time.Second

// measure asks for the next measurement, or waits for it.
func (d *decision) measure() {
	s := d.seen.Storage
	switch {
	case len(d.plan.Storage) == 0 || s.Asked:
	case d.now.Boot < s.Next:
		d.wakeAt(s.Next)
	default:
		d.do(MeasureStorage, "", 0)
	}
}

// measured folds a measurement.
func (o *Observed) measured(plan *pod.Plan, e Event) {
	s := &o.Storage
	if !s.Asked {
		return
	}
	s.Asked = false
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
