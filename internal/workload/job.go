package workload

import (
	"slices"
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// The delays before the next pod of a Job whose last pod has failed (pkg/controller/job).
const (
	firstJobDelay = 10 * time.Second
	lastJobDelay  = 10 * time.Minute
)

// job runs pods until enough have succeeded (syncJob in
// pkg/controller/job/job_controller.go).
func (d *decider) job() {
	j, s := &d.State.Job, &d.spec.Job
	if len(d.State.Revisions) == 0 {
		d.State.Revisions = []Revision{{Name: d.spec.Revision, Number: 1, Template: d.spec.Template}}
	}
	d.tally()
	if over, _ := d.State.Ended(); over {
		d.afterEnd()
		return
	}
	if j.Started.IsZero() && !s.Suspend {
		j.Started = d.now
	}
	active, stopping := d.jobPods()
	d.Counts.Replicas = len(active)
	for _, p := range active {
		if p.Ready {
			d.Counts.Ready++
		}
	}
	if success, reason, message := d.jobResult(active); reason != "" {
		// Without completions, running pods may end by themselves once one has succeeded.
		if reason != reasonEnough || s.Completions >= 0 {
			d.removeAll(active)
		}
		if len(active)+stopping == 0 {
			d.finish(success, reason, message)
		}
	} else if s.Suspend {
		d.removeAll(active)
		j.Started = time.Time{}
		d.condition("Suspended", true, "JobSuspended", "Job suspended")
	} else {
		if c, ok := d.State.Condition("Suspended"); ok && c.Status == "True" {
			d.condition("Suspended", false, "JobResumed", "Job resumed")
		}
		d.scaleJob(active, stopping)
	}
	over, _ := d.State.Ended()
	d.Settled = over || s.Suspend && len(active)+stopping == 0
	if over {
		d.afterEnd()
	}
}

const reasonEnough = "CompletionsReached"

// jobResult returns whether and why the Job succeeds or fails; reason is "" while it does neither.
func (d *decider) jobResult(active []*Pod) (success bool, reason, message string) {
	if reason, message, ok := d.State.succeeded(); ok {
		return true, reason, message
	}
	d.checkFailure(active)
	if reason, message, ok := d.State.succeeded(); ok {
		return true, reason, message
	}
	if j := &d.State.Job; j.Reason != "" {
		return false, j.Reason, j.Message
	}
	if d.enough() {
		return true, reasonEnough, "Reached expected number of succeeded pods"
	}
	return false, "", ""
}

// tally counts the pods that have ended since the last call. Pods that were stopped do not count;
// they are removed once they have ended.
func (d *decider) tally() {
	for i := range d.pods {
		p := &d.pods[i]
		switch {
		case p.Stopping && !p.Alive:
			d.remove(p)
		case p.Phase.Terminal() && !p.Stopping && !slices.Contains(d.State.Counted, p.UID):
			d.State.Counted = append(d.State.Counted, p.UID)
			d.tallyOne(p)
		}
	}
}

func (d *decider) tallyOne(p *Pod) {
	j := &d.State.Job
	switch {
	case p.Phase != pod.Succeeded:
		d.tallyFailure(p)
	case !d.spec.Job.Indexed:
		j.Succeeded++
		j.InARow = 0
	case p.Index >= 0 && p.Index < d.spec.Job.Completions && !slices.Contains(j.Indexes, p.Index) && !slices.Contains(j.FailedIndexes, p.Index):
		j.Indexes = append(j.Indexes, p.Index)
		slices.Sort(j.Indexes)
		j.Succeeded = len(j.Indexes)
		j.InARow = 0
	}
}

// jobPods returns the active pods and the number of pods being stopped.
func (d *decider) jobPods() (active []*Pod, stopping int) {
	for i := range d.pods {
		switch p := &d.pods[i]; {
		case p.active():
			active = append(active, p)
		case p.Stopping && p.Alive:
			stopping++
		}
	}
	return active, stopping
}

// checkFailure checks whether the Job has failed.
func (d *decider) checkFailure(active []*Pod) {
	j, s := &d.State.Job, &d.spec.Job
	if j.Reason != "" { // a pod's failure has decided it
		d.condition("FailureTarget", true, j.Reason, j.Message)
		return
	}
	restarts := 0
	for _, p := range active {
		restarts += p.Restarts
		if p.Restarts > 0 && p.ExitCode != 0 {
			j.ExitCode = p.ExitCode
		}
	}
	deadline := j.Started.Add(s.ActiveDeadline)
	switch {
	case j.Failed > s.BackoffLimit,
		s.OnFailure && s.BackoffLimit == 0 && restarts > 0,
		s.OnFailure && s.BackoffLimit > 0 && restarts >= s.BackoffLimit && restarts > 0:
		j.Reason, j.Message = "BackoffLimitExceeded", "Job has reached the specified backoff limit"
	case s.ActiveDeadline > 0 && !s.Suspend && !d.now.Before(deadline):
		j.Reason, j.Message = "DeadlineExceeded", "Job was active longer than specified deadline"
	case s.ActiveDeadline > 0 && !s.Suspend:
		d.wakeAt(deadline)
	}
	d.checkIndexes()
	d.checkSuccess()
	if j.Reason != "" {
		d.condition("FailureTarget", true, j.Reason, j.Message)
	}
}

// enough reports whether enough pods have succeeded.
func (d *decider) enough() bool {
	n := d.spec.Job.Completions
	if n < 0 {
		return d.State.Job.Succeeded > 0
	}
	return d.State.Job.Succeeded >= n
}

// scaleJob makes missing pods, or removes surplus ones.
func (d *decider) scaleJob(active []*Pod, stopping int) {
	j, s := &d.State.Job, &d.spec.Job
	want := s.Parallelism
	if s.Completions >= 0 {
		want = min(want, s.Completions-j.Succeeded-len(j.FailedIndexes))
	}
	if len(active) > want {
		slices.SortStableFunc(active, worse)
		d.removeAll(active[:len(active)-want])
		return
	}
	missing := want - len(active)
	if s.ReplaceFailed {
		missing -= stopping
	}
	if missing <= 0 {
		return
	}
	failed := after(d.State.FailedAt, jobDelay(j.InARow))
	if s.perIndex() {
		failed = time.Time{} // each index has its own delay
	}
	for _, until := range []time.Time{
		failed,
		after(d.State.CreateFailedAt, delay(d.State.CreateFailures+1)),
	} {
		if d.now.Before(until) {
			d.wakeAt(until)
			return
		}
	}
	for _, index := range d.vacant(missing) {
		d.Make = append(d.Make, Make{Revision: d.State.Revisions[0].Name, Index: index, Failures: j.Tries[index].Failures})
	}
}

func jobDelay(inARow int) time.Duration {
	if inARow == 0 {
		return 0
	}
	return min(firstJobDelay<<min(inARow-1, 10), lastJobDelay)
}

// vacant returns n places for pods: the lowest indexes without a pod.
func (d *decider) vacant(n int) []int {
	if !d.spec.Job.Indexed {
		return slices.Repeat([]int{-1}, n)
	}
	var list []int
	for i := 0; i < d.spec.Job.Completions && len(list) < n; i++ {
		taken := slices.ContainsFunc(d.pods, func(p Pod) bool {
			return p.Index == i && (p.active() || d.spec.Job.ReplaceFailed && p.Alive)
		})
		over := slices.Contains(d.State.Job.Indexes, i) || slices.Contains(d.State.Job.FailedIndexes, i)
		if !taken && !over && !d.waits(i) {
			list = append(list, i)
		}
	}
	return list
}

func (d *decider) removeAll(pods []*Pod) {
	for _, p := range pods {
		d.remove(p)
	}
}

// finish ends the Job.
func (d *decider) finish(success bool, reason, message string) {
	d.State.Job.Completed = d.now
	if success {
		d.condition("SuccessCriteriaMet", true, reason, message)
		d.condition("Complete", true, reason, message)
		return
	}
	d.condition("Failed", true, reason, message)
}

// afterEnd removes the Job when its TTL is over.
func (d *decider) afterEnd() {
	d.Settled = true
	ttl := d.spec.Job.TTL
	if ttl < 0 {
		d.Done = true
		return
	}
	moment := d.State.Job.Completed.Add(ttl)
	if d.now.Before(moment) {
		d.wakeAt(moment)
		return
	}
	for i := range d.pods {
		d.remove(&d.pods[i])
	}
	d.Delete = len(d.pods) == 0
}
