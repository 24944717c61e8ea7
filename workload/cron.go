package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// CronSpec is what a CronJob is to be.
type CronSpec struct {
	Schedule         string
	Zone             *time.Location // in which the schedule is read
	StartingDeadline time.Duration  // -1: none
	Concurrency      Concurrency
	Suspend          bool
	KeepSucceeded    int // ended Jobs that stay
	KeepFailed       int
	Created          time.Time
}

// Concurrency says what becomes of a run while another is under way.
type Concurrency string

const (
	Allow   Concurrency = "Allow"
	Forbid  Concurrency = "Forbid"
	Replace Concurrency = "Replace"
)

// CronState is what is remembered of a CronJob.
type CronState struct {
	Scheduled time.Time `json:"scheduled,omitzero"` // the time of the last run
	Succeeded time.Time `json:"succeeded,omitzero"` // when one has ended well last
}

// JobRun is a Job that a CronJob has made.
type JobRun struct {
	Name      string
	Created   time.Time
	Over      bool
	Succeeded bool
	Completed time.Time
}

// Run is a Job to be made.
type Run struct {
	Name      string
	Scheduled time.Time
}

// tooMany are the missed runs from which on Kubernetes suspects the clock.
const tooMany = 100

// parser reads what Kubernetes reads: five fields, or a macro.
func parse(schedule string) (cron.Schedule, error) {
	return cron.ParseStandard(schedule)
}

// CheckSchedule says what is wrong with a schedule, if anything.
func CheckSchedule(schedule string) error {
	if strings.Contains(schedule, "TZ=") {
		return fmt.Errorf("the zone is spec.timeZone's, not the schedule's")
	}
	_, err := parse(schedule)
	return err
}

// cron starts Jobs by the clock (pkg/controller/cronjob/cronjob_controllerv2.go).
func (d *decider) cron(jobs []JobRun) {
	c, s := &d.spec.Cron, &d.State.Cron
	running := 0
	for _, j := range jobs {
		if !j.Over {
			running++
		}
		if j.Succeeded && j.Completed.After(s.Succeeded) {
			s.Succeeded = j.Completed
		}
	}
	d.Counts.Replicas = running
	d.retire(jobs)
	d.Settled = true
	schedule, err := parse(c.Schedule)
	if err != nil || c.Suspend { // it was checked when it was applied
		return
	}
	zone := c.Zone
	if zone == nil {
		zone = time.UTC
	}
	now := d.now.In(zone)
	due := lastDue(schedule, d.earliest(zone), now)
	if next := schedule.Next(now); !next.IsZero() {
		d.wakeAt(next)
	}
	if due.IsZero() || running > 0 && c.Concurrency == Forbid {
		return // a run that is still due is started when the other has ended
	}
	if c.Concurrency == Replace {
		for _, j := range jobs {
			if !j.Over {
				d.RemoveJobs = append(d.RemoveJobs, j.Name)
			}
		}
	}
	s.Scheduled = due
	d.MakeJob = &Run{Name: fmt.Sprintf("%s-%d", d.spec.Name, runNumber(due)), Scheduled: due}
	d.Settled = false
}

// runNumber names a run: minutes, as in Kubernetes, or what tells runs apart that are
// less than a minute apart.
func runNumber(at time.Time) int64 {
	if at.Unix()%60 == 0 {
		return at.Unix() / 60
	}
	return at.Unix()
}

// earliest is from when on a missed run counts.
func (d *decider) earliest(zone *time.Location) time.Time {
	c := &d.spec.Cron
	from := c.Created
	if d.State.Cron.Scheduled.After(from) {
		from = d.State.Cron.Scheduled
	}
	if c.StartingDeadline >= 0 {
		if limit := d.now.Add(-c.StartingDeadline); limit.After(from) {
			from = limit
		}
	}
	return from.In(zone)
}

// lastDue is the latest time of the schedule after from and not after now, zero if there
// is none. What would take many steps is approached from now.
func lastDue(s cron.Schedule, from, now time.Time) time.Time {
	var last time.Time
	for steps := 0; ; steps++ {
		next := s.Next(from)
		if next.IsZero() || next.After(now) {
			return last
		}
		last, from = next, next
		if steps < tooMany {
			continue
		}
		// Look back from now, further each time, for one that is due.
		for back := time.Minute; ; back *= 2 {
			start := now.Add(-back)
			if start.Before(from) {
				break
			}
			if next := s.Next(start); !next.IsZero() && !next.After(now) {
				from = start
				break
			}
		}
		steps = 0
	}
}

// retire removes ended Jobs beyond those that stay.
func (d *decider) retire(jobs []JobRun) {
	for _, kind := range []struct {
		well bool
		keep int
	}{{true, d.spec.Cron.KeepSucceeded}, {false, d.spec.Cron.KeepFailed}} {
		var over []JobRun
		for _, j := range jobs {
			if j.Over && j.Succeeded == kind.well {
				over = append(over, j)
			}
		}
		slices.SortFunc(over, func(a, b JobRun) int {
			return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
		})
		for _, j := range over[:max(0, len(over)-kind.keep)] {
			d.RemoveJobs = append(d.RemoveJobs, j.Name)
		}
	}
}
