package manifest

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/pod/glance"
	"github.com/podrun/podrun/workload"
)

// WorkloadNow is a kept workload with what is known of it.
type WorkloadNow struct {
	Object *pod.Object
	Spec   *workload.Spec
	State  *workload.State
	Counts workload.Counts
	Jobs   []string // of a CronJob: those that run
}

// Render gives the workload as the Kubernetes object with its status.
func (w *WorkloadNow) Render() (metav1.Object, error) {
	object, err := Workload(w.Object)
	if err != nil {
		return nil, err
	}
	c, s := w.Counts, w.State
	n := func(i int) int32 { return int32(i) }
	switch o := object.(type) {
	case *appsv1.Deployment:
		o.Status = appsv1.DeploymentStatus{ObservedGeneration: s.Generation, Replicas: n(c.Replicas), UpdatedReplicas: n(c.Updated), ReadyReplicas: n(c.Ready), AvailableReplicas: n(c.Available), UnavailableReplicas: n(max(0, w.Spec.Replicas-c.Available))}
		for _, k := range s.Conditions {
			o.Status.Conditions = append(o.Status.Conditions, appsv1.DeploymentCondition{Type: appsv1.DeploymentConditionType(k.Type), Status: corev1.ConditionStatus(k.Status), Reason: k.Reason, Message: k.Message, LastTransitionTime: metav1.NewTime(k.LastTransition), LastUpdateTime: metav1.NewTime(k.LastTransition)})
		}
		if o.Annotations == nil {
			o.Annotations = map[string]string{}
		}
		if all := s.Revisions; len(all) > 0 {
			o.Annotations["deployment.kubernetes.io/revision"] = fmt.Sprint(all[len(all)-1].Number)
		}
	case *appsv1.ReplicaSet:
		o.Status = appsv1.ReplicaSetStatus{ObservedGeneration: s.Generation, Replicas: n(c.Replicas), FullyLabeledReplicas: n(c.Replicas), ReadyReplicas: n(c.Ready), AvailableReplicas: n(c.Available)}
	case *appsv1.StatefulSet:
		o.Status = appsv1.StatefulSetStatus{ObservedGeneration: s.Generation, Replicas: n(c.Replicas), UpdatedReplicas: n(c.Updated), CurrentReplicas: n(c.Replicas - c.Updated), ReadyReplicas: n(c.Ready), AvailableReplicas: n(c.Available), CurrentRevision: o.Name + "-" + s.Current, UpdateRevision: o.Name + "-" + w.Spec.Revision}
		if s.Current == w.Spec.Revision {
			o.Status.CurrentReplicas = n(c.Replicas)
		}
	case *appsv1.DaemonSet:
		o.Status = appsv1.DaemonSetStatus{ObservedGeneration: s.Generation, CurrentNumberScheduled: min(n(c.Replicas), 1), DesiredNumberScheduled: 1, UpdatedNumberScheduled: n(c.Updated), NumberReady: n(c.Ready), NumberAvailable: n(c.Available), NumberUnavailable: 1 - min(n(c.Available), 1)}
	case *batchv1.Job:
		o.Status = w.jobStatus()
	case *batchv1.CronJob:
		o.Status = batchv1.CronJobStatus{LastScheduleTime: timeOrNil(s.Cron.Scheduled), LastSuccessfulTime: timeOrNil(s.Cron.Succeeded)}
		for _, name := range w.Jobs {
			o.Status.Active = append(o.Status.Active, corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: o.Namespace, Name: name})
		}
	}
	return object, nil
}

func (w *WorkloadNow) jobStatus() batchv1.JobStatus {
	j := w.State.Job
	st := batchv1.JobStatus{Active: int32(w.Counts.Replicas), Succeeded: int32(j.Succeeded), Failed: int32(j.Failed), StartTime: timeOrNil(j.Started)}
	ready := int32(w.Counts.Ready)
	st.Ready = &ready
	for _, k := range w.State.Conditions {
		st.Conditions = append(st.Conditions, batchv1.JobCondition{Type: batchv1.JobConditionType(k.Type), Status: corev1.ConditionStatus(k.Status), Reason: k.Reason, Message: k.Message, LastTransitionTime: metav1.NewTime(k.LastTransition), LastProbeTime: metav1.NewTime(k.LastTransition)})
	}
	if _, well := w.State.Ended(); well {
		st.CompletionTime = timeOrNil(j.Completed)
	}
	if w.Spec.Job.Indexed {
		st.CompletedIndexes = ranges(j.Indexes)
	}
	if w.Spec.Job.BackoffPerIndex >= 0 {
		st.FailedIndexes = new(ranges(j.FailedIndexes))
	}
	return st
}

// ranges writes ascending numbers as Kubernetes does: 0,2-4.
func ranges(list []int) string {
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		switch {
		case j == i:
			parts = append(parts, fmt.Sprint(list[i]))
		case j == i+1:
			parts = append(parts, fmt.Sprint(list[i]), fmt.Sprint(list[j]))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", list[i], list[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// WorkloadHead are kubectl's columns of a kind that makes pods, without the namespace.
func WorkloadHead(kind pod.ObjectKind, wide bool) []string {
	head := map[pod.ObjectKind][]string{
		pod.KindDeployment:  {"NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"},
		pod.KindReplicaSet:  {"NAME", "DESIRED", "CURRENT", "READY", "AGE"},
		pod.KindStatefulSet: {"NAME", "READY", "AGE"},
		pod.KindDaemonSet:   {"NAME", "DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE", "NODE SELECTOR", "AGE"},
		pod.KindJob:         {"NAME", "STATUS", "COMPLETIONS", "DURATION", "AGE"},
		pod.KindCronJob:     {"NAME", "SCHEDULE", "TIMEZONE", "SUSPEND", "ACTIVE", "LAST SCHEDULE", "AGE"},
	}[kind]
	if wide {
		head = append(head, "CONTAINERS", "IMAGES")
	}
	return head
}

// WorkloadRow is the workload in these columns.
func WorkloadRow(w *WorkloadNow, wide bool, now time.Time) ([]string, error) {
	object, err := Workload(w.Object)
	if err != nil {
		return nil, err
	}
	c := w.Counts
	n := func(i int) string { return fmt.Sprint(i) }
	want := w.Spec.Replicas
	old := glance.Age(w.Object.CreatedAt, now)
	var row []string
	switch o := object.(type) {
	case *appsv1.Deployment:
		row = []string{o.Name, fmt.Sprintf("%d/%d", c.Ready, want), n(c.Updated), n(c.Available), old}
	case *appsv1.ReplicaSet:
		row = []string{o.Name, n(want), n(c.Replicas), n(c.Ready), old}
	case *appsv1.StatefulSet:
		row = []string{o.Name, fmt.Sprintf("%d/%d", c.Ready, want), old}
	case *appsv1.DaemonSet:
		row = []string{o.Name, "1", n(min(c.Replicas, 1)), n(c.Ready), n(c.Updated), n(c.Available), "", old}
	case *batchv1.Job:
		row = []string{o.Name, jobWord(w), completions(w), took(w, now), old}
	case *batchv1.CronJob:
		last := ""
		if t := w.State.Cron.Scheduled; !t.IsZero() {
			last = glance.Age(t, now)
		}
		zone := ""
		if z := o.Spec.TimeZone; z != nil {
			zone = *z
		}
		row = []string{o.Name, o.Spec.Schedule, zone, titled(is(o.Spec.Suspend)), n(len(w.Jobs)), last, old}
	}
	if wide {
		var names, images []string
		for _, ct := range templateOf(object).Spec.Containers {
			names, images = append(names, ct.Name), append(images, ct.Image)
		}
		row = append(row, strings.Join(names, ","), strings.Join(images, ","))
	}
	return row, nil
}

// titled writes a flag as kubectl does.
func titled(flag bool) string {
	if flag {
		return "True"
	}
	return "False"
}

// jobWord is the status of a Job in a word (printJob in pkg/printers/internalversion).
func jobWord(w *WorkloadNow) string {
	for _, kind := range []string{"Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet"} {
		if c, ok := w.State.Condition(kind); ok && c.Status == "True" {
			return kind
		}
	}
	if w.Object.Deleting {
		return "Terminating"
	}
	return "Running"
}

func completions(w *WorkloadNow) string {
	j := w.Spec.Job
	switch {
	case j.Completions >= 0:
		return fmt.Sprintf("%d/%d", w.State.Job.Succeeded, j.Completions)
	case j.Parallelism > 1:
		return fmt.Sprintf("%d/1 of %d", w.State.Job.Succeeded, j.Parallelism)
	}
	return fmt.Sprintf("%d/1", w.State.Job.Succeeded)
}

// took is how long a Job has run.
func took(w *WorkloadNow, now time.Time) string {
	j := w.State.Job
	if j.Started.IsZero() {
		return ""
	}
	if _, well := w.State.Ended(); well {
		now = j.Completed
	}
	return duration.HumanDuration(max(now.Sub(j.Started), 0))
}
