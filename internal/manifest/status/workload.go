package status

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/manifest/conversion"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/workload"
)

// Workload is a stored workload with its state.
type Workload struct {
	Object *pod.Object
	Spec   *workload.Spec
	State  *workload.State
	Counts workload.Counts
	Jobs   []string // of a CronJob: those that run
}

// Render returns the workload as the Kubernetes object with its status.
func (w *Workload) Render() (metav1.Object, error) {
	object, err := conversion.WorkloadToKubernetes(w.Object)
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
	case *corev1.ReplicationController:
		o.Status = corev1.ReplicationControllerStatus{ObservedGeneration: s.Generation, Replicas: n(c.Replicas), FullyLabeledReplicas: n(c.Replicas), ReadyReplicas: n(c.Ready), AvailableReplicas: n(c.Available)}
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

func (w *Workload) jobStatus() batchv1.JobStatus {
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
		st.CompletedIndexes = indexRanges(j.Indexes)
	}
	if w.Spec.Job.BackoffPerIndex >= 0 {
		st.FailedIndexes = new(indexRanges(j.FailedIndexes))
	}
	return st
}

// indexRanges returns ascending numbers in Kubernetes' form: 0,2-4.
func indexRanges(list []int) string {
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
