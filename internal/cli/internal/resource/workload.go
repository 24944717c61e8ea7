package resource

import (
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	manifeststatus "github.com/podrun/podrun/internal/manifest/status"
	"github.com/podrun/podrun/internal/manifest/workloads"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/workload"
)

// WorkloadInfo is a workload with its current state.
type WorkloadInfo struct {
	Workload   store.Workload
	Object     *pod.Object
	Spec       *workload.Spec
	State      workload.State
	Pods       []workload.Pod
	StoredPods map[string]store.Pod // its pods, by name
	Status     map[string]*pod.Status
	Incomplete []store.Pod     // incomplete pods with names of its pods
	Jobs       []*WorkloadInfo // the Jobs of a CronJob
}

// LoadWorkload reads a workload. It returns fs.ErrNotExist if there is none.
func LoadWorkload(dirs store.Dirs, w store.Workload) (*WorkloadInfo, error) {
	v := &WorkloadInfo{Workload: w, StoredPods: map[string]store.Pod{}, Status: map[string]*pod.Status{}}
	var err error
	if v.Object, err = w.Object(); err != nil {
		return nil, err
	}
	if v.Spec, err = workloads.NewSpec(v.Object); err != nil {
		return nil, err
	}
	if v.Spec.Cron.Zone, err = timeZone(v.Object); err != nil {
		return nil, err
	}
	if err := w.ReadState(&v.State); err != nil {
		return nil, err
	}
	if v.Object.Kind == pod.KindCronJob {
		return v, v.loadJobs(dirs)
	}
	return v, v.loadPods(dirs)
}

// timeZone returns the time zone of a CronJob's schedule.
func timeZone(o *pod.Object) (*time.Location, error) {
	if o.Kind != pod.KindCronJob {
		return nil, nil
	}
	name, err := workloads.TimeZoneOf(o)
	if err != nil || name == "" {
		return time.Local, err
	}
	return time.LoadLocation(name)
}

func (v *WorkloadInfo) loadPods(dirs store.Dirs) error {
	pods, err := dirs.Pods()
	if err != nil {
		return err
	}
	for _, p := range pods {
		if p.Namespace != v.Object.Namespace {
			continue
		}
		if !p.Exists() {
			if strings.HasPrefix(p.Name, v.Object.Name+"-") {
				v.Incomplete = append(v.Incomplete, p)
			}
			continue
		}
		k, err := LoadPod(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it is being created or removed
		}
		if err != nil {
			return err
		}
		by := workloads.ControllerOf(k.Manifest)
		if by == nil || by.Owner.UID != v.Object.UID {
			continue
		}
		v.StoredPods[p.Name], v.Status[p.Name] = p, k.Status
		v.Pods = append(v.Pods, observe(p, k, by))
	}
	return nil
}

// observe returns a pod in the form that Decide uses.
func observe(p store.Pod, k PodInfo, by *workloads.Controller) workload.Pod {
	o := workload.Pod{
		Name: p.Name, UID: string(k.Manifest.UID), Revision: by.Revision, Index: by.Index, Created: k.Manifest.CreationTimestamp.Time,
		Alive: p.Alive(), Stopping: k.Status.Deleting, Phase: k.Status.Phase, Ready: k.Status.Ready(),
	}
	for _, c := range k.Status.Conditions {
		if c.Type == "Ready" {
			o.ReadyAt = c.LastTransition
		}
	}
	if r := k.Status.Reason; r == pod.ReasonEvicted || r == pod.ReasonTerminated { // as in the kubelet
		o.Conditions = append(o.Conditions, workload.FailureCondition{Type: "DisruptionTarget", Status: "True"})
	}
	for _, c := range k.Status.Conditions {
		o.Conditions = append(o.Conditions, workload.FailureCondition{Type: c.Type, Status: c.Status})
	}
	for _, list := range [][]pod.ContainerStatus{k.Status.Containers, k.Status.InitContainers} {
		for i := range list {
			if t := list[i].State.Terminated; t != nil {
				o.Ends = append(o.Ends, workload.End{Container: list[i].Name, Code: t.ExitCode})
			}
		}
	}
	for _, list := range [][]pod.ContainerStatus{k.Status.InitContainers, k.Status.Containers} {
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

// loadJobs reads the Jobs of a CronJob.
func (v *WorkloadInfo) loadJobs(dirs store.Dirs) error {
	jobs, err := dirs.Workloads(v.Object.Namespace, pod.KindJob)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		job, err := LoadWorkload(dirs, j)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if by := job.Object.Owner; by != nil && by.UID == v.Object.UID {
			v.Jobs = append(v.Jobs, job)
		}
	}
	return nil
}

// Decide returns what the workload needs now.
func (v *WorkloadInfo) Decide(now time.Time) workload.Decision {
	var runs []workload.JobRun
	for _, j := range v.Jobs {
		run := workload.JobRun{Name: j.Object.Name, Created: j.Object.CreatedAt, Completed: j.State.Job.Completed}
		run.Over, run.Succeeded = j.State.Ended()
		runs = append(runs, run)
	}
	return workload.Decide(v.Spec, v.State, v.Pods, runs, now)
}

// Conditions returns the workload's conditions in the form of a pod's status.
func (v *WorkloadInfo) Conditions() *pod.Status { return &pod.Status{Conditions: v.State.Conditions} }

// Name returns the workload's name for messages: deployment.apps/web.
func (v *WorkloadInfo) Name() string { return kindnames.Display(v.Object) }

// Current returns the workload with its state, for output.
func (v *WorkloadInfo) Current() *manifeststatus.Workload {
	d := v.Decide(time.Now())
	n := &manifeststatus.Workload{Object: v.Object, Spec: v.Spec, State: &v.State, Counts: d.Counts}
	for _, j := range v.Jobs {
		if over, _ := j.State.Ended(); !over {
			n.Jobs = append(n.Jobs, j.Object.Name)
		}
	}
	return n
}

// FindWorkload returns a workload that the user has named.
func FindWorkload(dirs store.Dirs, kind pod.ObjectKind, namespace, name string) (*WorkloadInfo, error) {
	if _, err := FindObject(dirs, kind, namespace, name); err != nil {
		return nil, err
	}
	w, err := dirs.Workload(kind, namespace, name)
	if err != nil {
		return nil, err
	}
	v, err := LoadWorkload(dirs, w)
	if errors.Is(err, fs.ErrNotExist) { // gone meanwhile
		_, err = FindObject(dirs, kind, namespace, name)
	}
	return v, err
}
