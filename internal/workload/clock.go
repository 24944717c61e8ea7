package workload

import (
	"fmt"
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// clockTolerance is how far ahead of the clock a time may be: clocks are also adjusted by small steps.
const clockTolerance = time.Minute

// future reports whether a time was recorded while the clock was ahead.
func (d *decider) future(t time.Time) bool { return t.After(d.now.Add(clockTolerance)) }

// correctTimes makes the times in the future that the state has count as now, and records that as an event. Otherwise the
// workload would wait for as long as the clock was ahead.
func (d *decider) correctTimes() {
	s, corrected := &d.State, time.Time{}
	correct := func(t *time.Time) {
		if d.future(*t) {
			corrected, *t = *t, d.now
		}
	}
	for _, t := range []*time.Time{&s.Progress, &s.FailedAt, &s.CreateFailedAt, &s.Job.Started, &s.Job.Completed, &s.Cron.Scheduled} {
		correct(t)
	}
	for index, try := range s.Job.Tries {
		correct(&try.FailedAt)
		s.Job.Tries[index] = try
	}
	if s.Cron.Scheduled.IsZero() && d.future(d.spec.Cron.Created) {
		corrected, s.Cron.Scheduled = d.spec.Cron.Created, d.now
	}
	if d.future(s.Cron.Succeeded) { // nothing waits for it
		s.Cron.Succeeded = d.now
	}
	if !corrected.IsZero() {
		s.Events.Add(pod.Event{Type: pod.Warning, Reason: "ClockSetBack", Last: d.now,
			Message: fmt.Sprintf("The clock was ahead: the time %s is in the future and counts as now", corrected.UTC().Format(time.RFC3339))})
	}
	for i := range d.pods {
		p := &d.pods[i]
		if d.future(p.Ended) {
			p.Ended = d.now
		}
		if d.future(p.ReadyAt) {
			p.ReadyAt = time.Time{} // it was ready before the clock was set back
		}
	}
}
