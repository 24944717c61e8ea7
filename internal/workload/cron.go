package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// CronSpec is the desired state of a CronJob.
type CronSpec struct {
	Schedule         string
	Zone             *time.Location // of the schedule
	StartingDeadline time.Duration  // -1: none
	Concurrency      Concurrency
	Suspend          bool
	KeepSucceeded    int // how many ended Jobs are kept
	KeepFailed       int
	Created          time.Time
}

// Concurrency is the policy for a run that is due while another is under way.
type Concurrency string

const (
	Allow   Concurrency = "Allow"
	Forbid  Concurrency = "Forbid"
	Replace Concurrency = "Replace"
)

// CronState is the saved state of a CronJob.
type CronState struct {
	Scheduled time.Time `json:"scheduled,omitzero"` // the time of the last run
	Succeeded time.Time `json:"succeeded,omitzero"` // the last successful end
}

// JobRun is a Job that a CronJob has made.
type JobRun struct {
	Name      string
	Created   time.Time
	Over      bool
	Succeeded bool
	Completed time.Time
}

// Run is a Job to make.
type Run struct {
	Name      string
	Scheduled time.Time
}

// tooMany is the number of missed runs from which Kubernetes suspects a clock error.
const tooMany = 100

// parse accepts the syntax of Kubernetes: five fields, or a macro.
func parse(schedule string) (cron.Schedule, error) {
	return cron.ParseStandard(schedule)
}

// CheckSchedule returns an error if a schedule is invalid.
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
		if j.Succeeded && j.Completed.After(s.Succeeded) && !d.future(j.Completed) {
			s.Succeeded = j.Completed
		}
	}
	d.Counts.Replicas = running
	d.retire(jobs)
	d.Settled = true
	schedule, err := parse(c.Schedule)
	if err != nil || c.Suspend { // the schedule was validated when it was applied
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
		return // a run that is still due starts when the other has ended
	}
	if c.Concurrency == Replace {
		for _, j := range jobs {
			if !j.Over {
				d.RemoveJobs = append(d.RemoveJobs, j.Name)
			}
		}
	}
	s.Scheduled = due
	d.MakeJob = &Run{Name: d.runName(jobs, due), Scheduled: due}
	d.Settled = false
}

// runName returns a run's name. If a Job has it, made while the clock was ahead, the number is finer.
func (d *decider) runName(jobs []JobRun, due time.Time) string {
	name := fmt.Sprintf("%s-%d", d.spec.Name, runNumber(due))
	if slices.ContainsFunc(jobs, func(j JobRun) bool { return j.Name == name }) {
		return fmt.Sprintf("%s-%d", d.spec.Name, due.Unix())
	}
	return name
}

// runNumber returns the number in a run's name: minutes, as in Kubernetes, or a finer number for
// runs less than a minute apart.
func runNumber(moment time.Time) int64 {
	if moment.Unix()%60 == 0 {
		return moment.Unix() / 60
	}
	return moment.Unix()
}

// earliest returns the time from which missed runs count.
func (d *decider) earliest(zone *time.Location) time.Time {
	c := &d.spec.Cron
	from := c.Created
	if d.State.Cron.Scheduled.After(from) || d.future(from) {
		from = d.State.Cron.Scheduled
	}
	if c.StartingDeadline >= 0 {
		if limit := d.now.Add(-c.StartingDeadline); limit.After(from) {
			from = limit
		}
	}
	return from.In(zone)
}

// lastDue returns the latest time of the schedule after from and not after now, or zero. If that
// would take many steps, it searches backwards from now.
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
		// Go back from now in growing steps until a run is due.
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

// retire removes ended Jobs beyond the number that is kept.
func (d *decider) retire(jobs []JobRun) {
	for _, kind := range []struct {
		well bool
		keep int
	}{{true, d.spec.Cron.KeepSucceeded}, {false, d.spec.Cron.KeepFailed}} {
		var over []JobRun
		for _, j := range jobs {
			if d.future(j.Created) {
				j.Created = time.Time{} // it was made before the clock was set back
			}
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
