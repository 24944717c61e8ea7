package podmetrics

import (
	"bytes"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-state-metrics/v2/pkg/metric"
)

// writeWorkloads writes kube-state-metrics' families of the workloads among objects.
func writeWorkloads(out *bytes.Buffer, objects []any) {
	writeKind(out, objects, "deployment", deploymentState())
	writeKind(out, objects, "statefulset", statefulSetState())
	writeKind(out, objects, "daemonset", daemonSetState())
	writeKind(out, objects, "job_name", jobState())
	writeKind(out, objects, "cronjob", cronJobState())
}

// writeKind writes the families of the objects of one type, which the label name names.
func writeKind[T metav1.Object](out *bytes.Buffer, objects []any, label string, families []family[T]) {
	var list []T
	for _, o := range objects {
		if o, ok := o.(T); ok {
			list = append(list, o)
		}
	}
	writeFamilies(out, list, families, func(o T) []string { return []string{"namespace", o.GetNamespace(), label, o.GetName()} })
}

// created returns the creation time of an object.
func created(o metav1.Object) []*metric.Metric {
	return timestamp(new(o.GetCreationTimestamp()))
}

func deploymentState() []family[*appsv1.Deployment] {
	type d = *appsv1.Deployment
	const prefix = "kube_deployment_"
	return []family[d]{
		{prefix + "created", metric.Gauge, "Unix creation timestamp", func(d d) []*metric.Metric { return created(d) }},
		{prefix + "spec_replicas", metric.Gauge, "Number of desired pods for a deployment.", func(d d) []*metric.Metric { return number(d.Spec.Replicas) }},
		{prefix + "status_replicas", metric.Gauge, "The number of replicas per deployment.", func(d d) []*metric.Metric { return number(&d.Status.Replicas) }},
		{prefix + "status_replicas_ready", metric.Gauge, "The number of ready replicas per deployment.", func(d d) []*metric.Metric { return number(&d.Status.ReadyReplicas) }},
		{prefix + "status_replicas_available", metric.Gauge, "The number of available replicas per deployment.", func(d d) []*metric.Metric { return number(&d.Status.AvailableReplicas) }},
		{prefix + "status_replicas_unavailable", metric.Gauge, "The number of unavailable replicas per deployment.", func(d d) []*metric.Metric { return number(&d.Status.UnavailableReplicas) }},
		{prefix + "status_replicas_updated", metric.Gauge, "The number of updated replicas per deployment.", func(d d) []*metric.Metric { return number(&d.Status.UpdatedReplicas) }},
	}
}

func statefulSetState() []family[*appsv1.StatefulSet] {
	type s = *appsv1.StatefulSet
	const prefix = "kube_statefulset_"
	return []family[s]{
		{prefix + "created", metric.Gauge, "Unix creation timestamp", func(s s) []*metric.Metric { return created(s) }},
		{prefix + "replicas", metric.Gauge, "Number of desired pods for a StatefulSet.", func(s s) []*metric.Metric { return number(s.Spec.Replicas) }},
		{prefix + "status_replicas", metric.Gauge, "The number of replicas per StatefulSet.", func(s s) []*metric.Metric { return number(&s.Status.Replicas) }},
		{prefix + "status_replicas_ready", metric.Gauge, "The number of ready replicas per StatefulSet.", func(s s) []*metric.Metric { return number(&s.Status.ReadyReplicas) }},
		{prefix + "status_replicas_available", metric.Gauge, "The number of available replicas per StatefulSet.", func(s s) []*metric.Metric { return number(&s.Status.AvailableReplicas) }},
		{prefix + "status_replicas_updated", metric.Gauge, "The number of updated replicas per StatefulSet.", func(s s) []*metric.Metric { return number(&s.Status.UpdatedReplicas) }},
	}
}

func daemonSetState() []family[*appsv1.DaemonSet] {
	type d = *appsv1.DaemonSet
	const prefix = "kube_daemonset_"
	return []family[d]{
		{prefix + "created", metric.Gauge, "Unix creation timestamp", func(d d) []*metric.Metric { return created(d) }},
		{prefix + "status_desired_number_scheduled", metric.Gauge, "The number of nodes that should be running the daemon pod.", func(d d) []*metric.Metric { return number(&d.Status.DesiredNumberScheduled) }},
		{prefix + "status_current_number_scheduled", metric.Gauge, "The number of nodes running at least one daemon pod and are supposed to.", func(d d) []*metric.Metric { return number(&d.Status.CurrentNumberScheduled) }},
		{prefix + "status_number_ready", metric.Gauge, "The number of nodes that should be running the daemon pod and have one or more of the daemon pod running and ready.", func(d d) []*metric.Metric { return number(&d.Status.NumberReady) }},
		{prefix + "status_number_unavailable", metric.Gauge, "The number of nodes that should be running the daemon pod and have none of the daemon pod running and available", func(d d) []*metric.Metric { return number(&d.Status.NumberUnavailable) }},
	}
}

func jobState() []family[*batchv1.Job] {
	type j = *batchv1.Job
	const prefix = "kube_job_"
	condition := func(of batchv1.JobConditionType) func(j) []*metric.Metric {
		return func(j j) (all []*metric.Metric) {
			for _, c := range j.Status.Conditions {
				if c.Type == of {
					all = append(all, conditionStates(c.Status)...)
				}
			}
			return all
		}
	}
	return []family[j]{
		{prefix + "created", metric.Gauge, "Unix creation timestamp", func(j j) []*metric.Metric { return created(j) }},
		{prefix + "spec_completions", metric.Gauge, "The desired number of successfully finished pods the job should be run with.", func(j j) []*metric.Metric { return number(j.Spec.Completions) }},
		{prefix + "status_active", metric.Gauge, "The number of actively running pods.", func(j j) []*metric.Metric { return number(&j.Status.Active) }},
		{prefix + "status_succeeded", metric.Gauge, "The number of pods which reached Phase Succeeded.", func(j j) []*metric.Metric { return number(&j.Status.Succeeded) }},
		{prefix + "status_failed", metric.Gauge, "The number of pods which reached Phase Failed.", func(j j) []*metric.Metric { return number(&j.Status.Failed) }},
		{prefix + "status_start_time", metric.Gauge, "StartTime represents time when the job was acknowledged by the Job Manager.", func(j j) []*metric.Metric { return timestamp(j.Status.StartTime) }},
		{prefix + "status_completion_time", metric.Gauge, "CompletionTime represents time when the job was completed.", func(j j) []*metric.Metric { return timestamp(j.Status.CompletionTime) }},
		{prefix + "complete", metric.Gauge, "The job has completed its execution.", condition(batchv1.JobComplete)},
		{prefix + "failed", metric.Gauge, "The job has failed its execution.", condition(batchv1.JobFailed)},
	}
}

func cronJobState() []family[*batchv1.CronJob] {
	type c = *batchv1.CronJob
	const prefix = "kube_cronjob_"
	return []family[c]{
		{prefix + "created", metric.Gauge, "Unix creation timestamp", func(c c) []*metric.Metric { return created(c) }},
		{prefix + "status_active", metric.Gauge, "Active holds pointers to currently running jobs.", func(c c) []*metric.Metric { return one(float64(len(c.Status.Active))) }},
		{prefix + "status_last_schedule_time", metric.Gauge, "LastScheduleTime keeps information of when was the last time the job was successfully scheduled.", func(c c) []*metric.Metric { return timestamp(c.Status.LastScheduleTime) }},
		{prefix + "status_last_successful_time", metric.Gauge, "LastSuccessfulTime keeps information of when was the last time the job was completed successfully.", func(c c) []*metric.Metric { return timestamp(c.Status.LastSuccessfulTime) }},
		{prefix + "spec_suspend", metric.Gauge, "Suspend flag tells the controller to suspend subsequent executions.", func(c c) []*metric.Metric {
			return one(oneIf(c.Spec.Suspend != nil && *c.Spec.Suspend))
		}},
	}
}
