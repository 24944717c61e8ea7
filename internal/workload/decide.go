package workload

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// Decide returns what a workload needs now. pods are all existing pods that it has made, jobs the Jobs
// of a CronJob. It changes none of its arguments.
func Decide(spec *Spec, state State, pods []Pod, jobs []JobRun, now time.Time) Decision {
	d := &decider{spec: spec, now: now, pods: slices.Clone(pods), Decision: Decision{State: clone(state)}}
	slices.SortFunc(d.pods, func(a, b Pod) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	d.State.Generation = spec.Generation
	d.correctTimes()
	d.clean()
	switch {
	case spec.Deleting:
		d.deleteAll(jobs)
	case spec.Kind == pod.KindJob:
		d.job()
	case spec.Kind == pod.KindCronJob:
		d.cron(jobs)
	default:
		d.recordRevision()
		d.newest().Cause = d.spec.Cause
		d.replicas()
	}
	d.forget()
	return d.Decision
}

// decider is the state of one call of Decide.
type decider struct {
	Decision
	spec *Spec
	now  time.Time
	pods []Pod // by age
}

func clone(s State) State {
	s.Conditions = slices.Clone(s.Conditions)
	s.Revisions = slices.Clone(s.Revisions)
	s.Counted = slices.Clone(s.Counted)
	s.Events.Events = slices.Clone(s.Events.Events)
	s.Job.Indexes, s.Job.FailedIndexes = slices.Clone(s.Job.Indexes), slices.Clone(s.Job.FailedIndexes)
	s.Job.Tries = maps.Clone(s.Job.Tries)
	return s
}

// deleteAll handles a workload that is being deleted.
func (d *decider) deleteAll(jobs []JobRun) {
	for i := range d.pods {
		if p := &d.pods[i]; !p.Stopping || !p.Alive {
			d.remove(p)
		}
	}
	for _, j := range jobs {
		d.RemoveJobs = append(d.RemoveJobs, j.Name)
	}
	d.Delete = len(d.pods)+len(jobs) == 0
}

// clean removes pods that were stopped and have ended, if the stopping command did not remove them.
func (d *decider) clean() {
	if d.spec.Deleting {
		return
	}
	for i := range d.pods {
		if p := &d.pods[i]; p.Stopping && !p.Alive && d.spec.Kind != pod.KindJob {
			d.remove(p)
		}
	}
}

// forget drops removed pods from the counted ones.
func (d *decider) forget() {
	d.State.Counted = slices.DeleteFunc(d.State.Counted, func(uid string) bool {
		return !slices.ContainsFunc(d.pods, func(p Pod) bool { return p.UID == uid })
	})
}

// replicas handles the kinds with a number of replicas.
func (d *decider) replicas() {
	d.handleEndedPods()
	switch d.spec.Kind {
	case pod.KindStatefulSet:
		d.statefulSet()
	case pod.KindDaemonSet:
		d.daemonSet()
	default:
		d.deployment()
	}
	d.count()
	d.prune()
	if d.spec.Kind == pod.KindDeployment {
		d.conditions()
	} else if d.State.CreateError != "" {
		d.condition("ReplicaFailure", true, "FailedCreate", d.State.CreateError)
	} else {
		d.dropCondition("ReplicaFailure")
	}
	d.Settled = len(d.Make)+len(d.Remove) == 0 && d.Wake.IsZero() && d.complete()
}

// recordRevision makes the desired revision the last in the history.
func (d *decider) recordRevision() {
	all := d.State.Revisions
	number := 0
	for _, r := range all {
		number = max(number, r.Number)
	}
	i := slices.IndexFunc(all, func(r Revision) bool { return r.Name == d.spec.Revision })
	switch {
	case i >= 0 && i == len(all)-1:
		return
	case i >= 0: // back to an earlier one
		r := all[i]
		r.Number = number + 1
		d.State.Revisions = append(slices.Delete(all, i, i+1), r)
	default:
		d.State.Revisions = append(all, Revision{Name: d.spec.Revision, Number: number + 1, Template: d.spec.Template})
	}
	d.State.Progress = d.now
	if d.spec.Kind == pod.KindDeployment && d.spec.ProgressDeadline > 0 {
		d.condition("Progressing", true, "NewReplicaSetCreated", fmt.Sprintf("There is a new version: %q.", d.spec.Name+"-"+d.spec.Revision))
	}
	d.State.CreateError, d.State.CreateFailures = "", 0
	d.State.Failures = 0
}

// newest returns the desired revision.
func (d *decider) newest() *Revision { return &d.State.Revisions[len(d.State.Revisions)-1] }

// count sets the numbers of the status.
func (d *decider) count() {
	for i := range d.pods {
		p := &d.pods[i]
		if !p.active() {
			continue
		}
		d.Counts.Replicas++
		if p.Revision == d.spec.Revision {
			d.Counts.Updated++
		}
		if p.Ready {
			d.Counts.Ready++
		}
		if ok, moment := p.available(d.spec.MinReady, d.now); ok {
			d.Counts.Available++
		} else {
			d.wakeAt(moment)
		}
	}
}

// complete reports whether exactly the desired pods exist.
func (d *decider) complete() bool {
	n, c := d.spec.Replicas, d.Counts
	if c.Replicas != n || c.Available != n {
		return false
	}
	switch {
	case d.spec.Kind.IsReplicaSet(), d.spec.Strategy == OnDelete, d.spec.Paused:
		return true
	case d.spec.Kind == pod.KindStatefulSet:
		return c.Updated >= n-min(d.spec.Partition, n)
	}
	return c.Updated == n
}

// prune drops old revisions without pods, except the latest of them.
func (d *decider) prune() {
	used := func(r Revision) bool {
		return r.Replicas > 0 || r.Name == d.State.Current || slices.ContainsFunc(d.pods, func(p Pod) bool { return p.Revision == r.Name })
	}
	idle := 0
	for _, r := range d.State.Revisions[:len(d.State.Revisions)-1] {
		if !used(r) {
			idle++
		}
	}
	last := d.newest().Name
	d.State.Revisions = slices.DeleteFunc(d.State.Revisions, func(r Revision) bool {
		if r.Name == last || used(r) || idle <= d.spec.History {
			return false
		}
		idle--
		return true
	})
}
