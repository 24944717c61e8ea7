package printers

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/manifest/conversion"
	"github.com/podrun/podrun/internal/manifest/status"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/pod/podrow"
)

// WorkloadHeader returns kubectl's columns for a kind of workload, without the namespace.
func WorkloadHeader(kind pod.ObjectKind, wide bool) []string {
	head := map[pod.ObjectKind][]string{
		pod.KindDeployment:  {"NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"},
		pod.KindReplicaSet:  {"NAME", "DESIRED", "CURRENT", "READY", "AGE"},
		pod.KindReplication: {"NAME", "DESIRED", "CURRENT", "READY", "AGE"},
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

// WorkloadRow returns the workload's line under WorkloadHeader.
func WorkloadRow(w *status.Workload, wide bool, now time.Time) ([]string, error) {
	object, err := conversion.WorkloadToKubernetes(w.Object)
	if err != nil {
		return nil, err
	}
	c := w.Counts
	n := func(i int) string { return fmt.Sprint(i) }
	want := w.Spec.Replicas
	old := podrow.Age(w.Object.CreatedAt, now)
	var row []string
	switch o := object.(type) {
	case *appsv1.Deployment:
		row = []string{o.Name, fmt.Sprintf("%d/%d", c.Ready, want), n(c.Updated), n(c.Available), old}
	case *appsv1.ReplicaSet, *corev1.ReplicationController:
		row = []string{w.Object.Name, n(want), n(c.Replicas), n(c.Ready), old}
	case *appsv1.StatefulSet:
		row = []string{o.Name, fmt.Sprintf("%d/%d", c.Ready, want), old}
	case *appsv1.DaemonSet:
		row = []string{o.Name, "1", n(min(c.Replicas, 1)), n(c.Ready), n(c.Updated), n(c.Available), "", old}
	case *batchv1.Job:
		row = []string{o.Name, jobStatusWord(w), jobCompletions(w), jobDuration(w, now), old}
	case *batchv1.CronJob:
		last := ""
		if t := w.State.Cron.Scheduled; !t.IsZero() {
			last = podrow.Age(t, now)
		}
		row = []string{o.Name, o.Spec.Schedule, ptr.Deref(o.Spec.TimeZone, ""), BoolColumn(ptr.Deref(o.Spec.Suspend, false)), n(len(w.Jobs)), last, old}
	}
	if wide {
		var names, images []string
		for _, ct := range conversion.PodTemplate(object).Spec.Containers {
			names, images = append(names, ct.Name), append(images, ct.Image)
		}
		row = append(row, strings.Join(names, ","), strings.Join(images, ","))
	}
	return row, nil
}

// BoolColumn returns a flag as kubectl prints it.
func BoolColumn(flag bool) string {
	if flag {
		return "True"
	}
	return "False"
}

// jobStatusWord returns the status of a Job as one word (printJob in pkg/printers/internalversion).
func jobStatusWord(w *status.Workload) string {
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

func jobCompletions(w *status.Workload) string {
	j := w.Spec.Job
	switch {
	case j.Completions >= 0:
		return fmt.Sprintf("%d/%d", w.State.Job.Succeeded, j.Completions)
	case j.Parallelism > 1:
		return fmt.Sprintf("%d/1 of %d", w.State.Job.Succeeded, j.Parallelism)
	}
	return fmt.Sprintf("%d/1", w.State.Job.Succeeded)
}

// jobDuration returns how long a Job has run.
func jobDuration(w *status.Workload, now time.Time) string {
	j := w.State.Job
	if j.Started.IsZero() {
		return ""
	}
	if _, well := w.State.Ended(); well {
		now = j.Completed
	}
	return duration.HumanDuration(max(now.Sub(j.Started), 0))
}
