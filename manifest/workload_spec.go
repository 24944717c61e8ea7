package manifest

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/workload"
)

// WorkloadSpec is what a kept workload is to be, for workload.Decide. The zone of a
// CronJob's schedule is still to be given.
func WorkloadSpec(stored *pod.Object) (*workload.Spec, error) {
	object, err := Workload(stored)
	if err != nil {
		return nil, err
	}
	s := &workload.Spec{
		Kind: stored.Kind, Namespace: stored.Namespace, Name: stored.Name, Generation: stored.Revision, Deleting: stored.Deleting,
		Strategy: workload.Rolling,
	}
	if s.Template, err = json.Marshal(templateOf(object)); err != nil {
		return nil, fmt.Errorf("encode the template of %s %s: %w", stored.Kind, stored.Name, err)
	}
	s.Revision = hash(s.Template)
	switch o := object.(type) {
	case *appsv1.Deployment:
		specDeployment(s, &o.Spec)
	case *appsv1.ReplicaSet:
		s.Replicas, s.MinReady = int(*o.Spec.Replicas), seconds(o.Spec.MinReadySeconds)
	case *appsv1.StatefulSet:
		specStatefulSet(s, &o.Spec)
	case *appsv1.DaemonSet:
		s.Replicas, s.MinReady, s.History = 1, seconds(o.Spec.MinReadySeconds), int(*o.Spec.RevisionHistoryLimit)
		s.Strategy = workload.Strategy(o.Spec.UpdateStrategy.Type)
		if roll := o.Spec.UpdateStrategy.RollingUpdate; roll != nil {
			s.MaxSurge = scaled(roll.MaxSurge, 1, true)
		}
	case *batchv1.Job:
		s.Job = specJob(&o.Spec)
	case *batchv1.CronJob:
		s.Cron = specCron(o)
	}
	return s, nil
}

// hash names a template in six to ten letters and digits (ComputeHash in pkg/controller
// of Kubernetes does the like).
func hash(template []byte) string {
	h := fnv.New32a()
	h.Write(template)
	return rand.SafeEncodeString(fmt.Sprint(h.Sum32()))
}

func seconds[T int32 | int64](n T) time.Duration { return time.Duration(n) * time.Second }

// scaled is a number of pods, or a part of all.
func scaled(v *intstr.IntOrString, total int, up bool) int {
	if v == nil {
		return 0
	}
	n, _ := intstr.GetScaledValueFromIntOrPercent(v, total, up) // it was validated
	return n
}

func specDeployment(s *workload.Spec, d *appsv1.DeploymentSpec) {
	s.Replicas, s.MinReady, s.Paused, s.History = int(*d.Replicas), seconds(d.MinReadySeconds), d.Paused, int(*d.RevisionHistoryLimit)
	s.Strategy = workload.Strategy(d.Strategy.Type)
	if p := *d.ProgressDeadlineSeconds; p < math.MaxInt32 { // which means none
		s.ProgressDeadline = seconds(p)
	}
	if roll := d.Strategy.RollingUpdate; roll != nil {
		s.MaxSurge = scaled(roll.MaxSurge, s.Replicas, true)
		s.MaxUnavailable = min(scaled(roll.MaxUnavailable, s.Replicas, false), s.Replicas)
		if s.MaxSurge == 0 && s.MaxUnavailable == 0 { // ResolveFenceposts of Kubernetes: else nothing could move
			s.MaxUnavailable = 1
		}
	}
}

func specStatefulSet(s *workload.Spec, d *appsv1.StatefulSetSpec) {
	s.Replicas, s.MinReady, s.History = int(*d.Replicas), seconds(d.MinReadySeconds), int(*d.RevisionHistoryLimit)
	s.Strategy = workload.Strategy(d.UpdateStrategy.Type)
	s.Parallel = d.PodManagementPolicy == appsv1.ParallelPodManagement
	if d.Ordinals != nil {
		s.FirstOrdinal = int(d.Ordinals.Start)
	}
	if roll := d.UpdateStrategy.RollingUpdate; roll != nil {
		if roll.Partition != nil {
			s.Partition = int(*roll.Partition)
		}
		s.MaxUnavailable = max(scaled(roll.MaxUnavailable, s.Replicas, false), 1) // getStatefulSetMaxUnavailable
	}
}

func specJob(s *batchv1.JobSpec) workload.JobSpec {
	j := workload.JobSpec{
		Parallelism: int(*s.Parallelism), Completions: -1, BackoffLimit: int(*s.BackoffLimit),
		Indexed: indexed(s), Suspend: is(s.Suspend), TTL: -1,
		OnFailure:     s.Template.Spec.RestartPolicy == corev1.RestartPolicyOnFailure,
		ReplaceFailed: *s.PodReplacementPolicy == batchv1.Failed,
	}
	if s.Completions != nil {
		j.Completions = int(*s.Completions)
	}
	if s.ActiveDeadlineSeconds != nil {
		j.ActiveDeadline = seconds(*s.ActiveDeadlineSeconds)
	}
	if s.TTLSecondsAfterFinished != nil {
		j.TTL = seconds(*s.TTLSecondsAfterFinished)
	}
	specPolicies(&j, s)
	return j
}

func specCron(o *batchv1.CronJob) workload.CronSpec {
	s := &o.Spec
	c := workload.CronSpec{
		Schedule: s.Schedule, Concurrency: workload.Concurrency(s.ConcurrencyPolicy), Suspend: is(s.Suspend), StartingDeadline: -1,
		KeepSucceeded: int(*s.SuccessfulJobsHistoryLimit), KeepFailed: int(*s.FailedJobsHistoryLimit), Created: o.CreationTimestamp.Time,
	}
	if s.StartingDeadlineSeconds != nil {
		c.StartingDeadline = seconds(*s.StartingDeadlineSeconds)
	}
	return c
}

// serviceName is the Service of a StatefulSet.
func serviceName(object metav1.Object) string {
	if s, ok := object.(*appsv1.StatefulSet); ok {
		return s.Spec.ServiceName
	}
	return ""
}

// ZoneOf is the time zone that a kept CronJob names, or "".
func ZoneOf(stored *pod.Object) (string, error) {
	object, err := Workload(stored)
	if err != nil {
		return "", err
	}
	if c, ok := object.(*batchv1.CronJob); ok && c.Spec.TimeZone != nil {
		return *c.Spec.TimeZone, nil
	}
	return "", nil
}

// JobOf is the Job that a kept CronJob starts at a time. Its uid is still to be given.
func JobOf(cron *pod.Object, run *workload.Run) (*pod.Object, error) {
	object, err := Workload(cron)
	if err != nil {
		return nil, err
	}
	t := object.(*batchv1.CronJob).Spec.JobTemplate
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: run.Name, Namespace: cron.Namespace, Labels: t.Labels, Annotations: map[string]string{}}, Spec: t.Spec}
	for k, v := range t.Annotations {
		job.Annotations[k] = v
	}
	job.Annotations[batchv1.CronJobScheduledTimestampAnnotation] = run.Scheduled.Format(time.RFC3339)
	out := storedWorkload(job)
	out.Kind, out.UnsetPull = pod.KindJob, cron.UnsetPull
	out.Owner = &pod.Owner{Kind: cron.Kind, Name: cron.Name, UID: cron.UID}
	return out, nil
}
