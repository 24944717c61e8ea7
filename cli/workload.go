package cli

import (
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest/workloads"
	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/workload"
)

// view is a workload with all that is known of it.
type view struct {
	place  store.Workload
	object *pod.Object
	spec   *workload.Spec
	state  workload.State
	pods   []workload.Pod
	places map[string]store.Pod // of the pods, by name
	status map[string]*pod.Status
	halves []store.Pod // that are not whole, and have names as its pods have
	jobs   []*view     // of a CronJob
}

// viewOf looks at a workload. One that is not there gives fs.ErrNotExist.
func viewOf(dirs store.Dirs, place store.Workload) (*view, error) {
	v := &view{place: place, places: map[string]store.Pod{}, status: map[string]*pod.Status{}}
	var err error
	if v.object, err = place.Object(); err != nil {
		return nil, err
	}
	if v.spec, err = workloads.NewSpec(v.object); err != nil {
		return nil, err
	}
	if v.spec.Cron.Zone, err = zone(v.object); err != nil {
		return nil, err
	}
	if err := place.ReadState(&v.state); err != nil {
		return nil, err
	}
	if v.object.Kind == pod.KindCronJob {
		return v, v.lookAtJobs(dirs)
	}
	return v, v.lookAtPods(dirs)
}

// zone is in which a CronJob's schedule is read.
func zone(o *pod.Object) (*time.Location, error) {
	if o.Kind != pod.KindCronJob {
		return nil, nil
	}
	name, err := workloads.TimeZoneOf(o)
	if err != nil || name == "" {
		return time.Local, err
	}
	return time.LoadLocation(name)
}

func (v *view) lookAtPods(dirs store.Dirs) error {
	places, err := dirs.Pods()
	if err != nil {
		return err
	}
	for _, p := range places {
		if p.Namespace != v.object.Namespace {
			continue
		}
		if !p.Exists() {
			if strings.HasPrefix(p.Name, v.object.Name+"-") {
				v.halves = append(v.halves, p)
			}
			continue
		}
		k, err := know(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it is being made or removed
		}
		if err != nil {
			return err
		}
		by := workloads.ControllerOf(k.manifest)
		if by == nil || by.Owner.UID != v.object.UID {
			continue
		}
		v.places[p.Name], v.status[p.Name] = p, k.status
		v.pods = append(v.pods, observed(p, k, by))
	}
	return nil
}

// observed is a pod as Decide sees it.
func observed(p store.Pod, k known, by *workloads.Controller) workload.Pod {
	o := workload.Pod{
		Name: p.Name, UID: string(k.manifest.UID), Revision: by.Revision, Index: by.Index, Created: k.manifest.CreationTimestamp.Time,
		Alive: p.Alive(), Stopping: k.status.Deleting, Phase: k.status.Phase, Ready: k.status.Ready(),
	}
	for _, c := range k.status.Conditions {
		if c.Type == "Ready" {
			o.ReadyAt = c.LastTransition
		}
	}
	if r := k.status.Reason; r == pod.ReasonEvicted || r == pod.ReasonTerminated { // as the kubelet says it
		o.Conditions = append(o.Conditions, workload.FailureCondition{Type: "DisruptionTarget", Status: "True"})
	}
	for _, c := range k.status.Conditions {
		o.Conditions = append(o.Conditions, workload.FailureCondition{Type: c.Type, Status: c.Status})
	}
	for _, list := range [][]pod.ContainerStatus{k.status.Containers, k.status.InitContainers} {
		for i := range list {
			if t := list[i].State.Terminated; t != nil {
				o.Ends = append(o.Ends, workload.End{Container: list[i].Name, Code: t.ExitCode})
			}
		}
	}
	for _, list := range [][]pod.ContainerStatus{k.status.InitContainers, k.status.Containers} {
		for i := range list {
			c := &list[i]
			o.Restarts += c.RestartCount
			for _, t := range []*pod.Terminated{c.LastState.Terminated, c.State.Terminated} {
				if t == nil {
					continue
				}
				if t.FinishedAt.After(o.Ended) {
					o.Ended = t.FinishedAt
				}
				if t.ExitCode != 0 {
					o.ExitCode = t.ExitCode
				}
			}
		}
	}
	return o
}

// lookAtJobs finds the Jobs that a CronJob has made.
func (v *view) lookAtJobs(dirs store.Dirs) error {
	jobs, err := dirs.Workloads(v.object.Namespace, pod.KindJob)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		job, err := viewOf(dirs, j)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if by := job.object.Owner; by != nil && by.UID == v.object.UID {
			v.jobs = append(v.jobs, job)
		}
	}
	return nil
}

// decide says what the workload needs now.
func (v *view) decide(now time.Time) workload.Decision {
	var runs []workload.JobRun
	for _, j := range v.jobs {
		run := workload.JobRun{Name: j.object.Name, Created: j.object.CreatedAt, Completed: j.state.Job.Completed}
		run.Over, run.Succeeded = j.state.Ended()
		runs = append(runs, run)
	}
	return workload.Decide(v.spec, v.state, v.pods, runs, now)
}

// conditions are the workload's, as a pod has them.
func (v *view) conditions() *pod.Status { return &pod.Status{Conditions: v.state.Conditions} }

// name is the workload as messages have it: deployment.apps/web.
func (v *view) name() string { return nameOf(v.object) }
