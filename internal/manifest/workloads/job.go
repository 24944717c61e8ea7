package workloads

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/manifest/conversion"
	"github.com/podrun/podrun/internal/manifest/defaulting"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/workload"
)

// specPolicies converts a Job's validated policies for workload.Decide.
func specPolicies(j *workload.JobSpec, s *batchv1.JobSpec) {
	j.BackoffPerIndex, j.MaxFailedIndexes = -1, -1
	if s.BackoffLimitPerIndex != nil {
		j.BackoffPerIndex = int(*s.BackoffLimitPerIndex)
	}
	if s.MaxFailedIndexes != nil {
		j.MaxFailedIndexes = int(*s.MaxFailedIndexes)
	}
	if p := s.PodFailurePolicy; p != nil {
		for _, r := range p.Rules {
			j.FailureRules = append(j.FailureRules, specFailureRule(&r))
		}
	}
	if p := s.SuccessPolicy; p != nil {
		for _, r := range p.Rules {
			rule := workload.SuccessRule{Count: -1}
			if r.SucceededCount != nil {
				rule.Count = int(*r.SucceededCount)
			}
			if r.SucceededIndexes != nil {
				rule.Indexes, _ = podutil.ParseIndexes(*r.SucceededIndexes, j.Completions)
				rule.Indexes = append([]int{}, rule.Indexes...) // an empty list matches no index
			}
			j.SuccessRules = append(j.SuccessRules, rule)
		}
	}
}

func specFailureRule(r *batchv1.PodFailurePolicyRule) workload.FailureRule {
	out := workload.FailureRule{Action: workload.FailureAction(r.Action)}
	if c := r.OnExitCodes; c != nil {
		out.NotIn = c.Operator == batchv1.PodFailurePolicyOnExitCodesOpNotIn
		if c.ContainerName != nil {
			out.Container = *c.ContainerName
		}
		for _, n := range c.Values {
			out.Codes = append(out.Codes, int(n))
		}
	}
	for _, c := range r.OnPodConditions {
		out.Conditions = append(out.Conditions, workload.FailureCondition{Type: string(c.Type), Status: string(c.Status)})
	}
	return out
}

func specJob(s *batchv1.JobSpec) workload.JobSpec {
	j := workload.JobSpec{
		Parallelism: int(*s.Parallelism), Completions: -1, BackoffLimit: int(*s.BackoffLimit),
		Indexed: podutil.IsIndexedJob(s), Suspend: ptr.Deref(s.Suspend, false), TTL: -1,
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
		Schedule: s.Schedule, Concurrency: workload.Concurrency(s.ConcurrencyPolicy), Suspend: ptr.Deref(s.Suspend, false), StartingDeadline: -1,
		KeepSucceeded: int(*s.SuccessfulJobsHistoryLimit), KeepFailed: int(*s.FailedJobsHistoryLimit), Created: o.CreationTimestamp.Time,
	}
	if s.StartingDeadlineSeconds != nil {
		c.StartingDeadline = seconds(*s.StartingDeadlineSeconds)
	}
	return c
}

// jobOf returns a Job of a stored CronJob.
func jobOf(cron *pod.Object, name string) (*batchv1.Job, error) {
	object, err := conversion.WorkloadToKubernetes(cron)
	if err != nil {
		return nil, err
	}
	t := object.(*batchv1.CronJob).Spec.JobTemplate
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: cron.Namespace, Labels: t.Labels, Annotations: map[string]string{}}, Spec: t.Spec}
	for k, v := range t.Annotations {
		job.Annotations[k] = v
	}
	return job, nil
}

// NewManualJob returns a Job of a stored CronJob that a user starts, as kubectl create job --from does.
func NewManualJob(cron *pod.Object, name string) (*batchv1.Job, error) {
	job, err := jobOf(cron, name)
	if err != nil {
		return nil, err
	}
	job.Annotations["cronjob.kubernetes.io/instantiate"] = "manual"
	defaulting.RestoreUnsetPullPolicies(&job.Spec.Template.Spec, cron.DefaultedPullPolicies)
	return job, nil
}

// NewJob returns the Job that a stored CronJob starts at a time. Its uid is not set yet.
func NewJob(cron *pod.Object, run *workload.Run) (*pod.Object, error) {
	job, err := jobOf(cron, run.Name)
	if err != nil {
		return nil, err
	}
	job.Annotations[batchv1.CronJobScheduledTimestampAnnotation] = run.Scheduled.Format(time.RFC3339)
	out := conversion.WorkloadFromKubernetes(job)
	out.Kind, out.DefaultedPullPolicies = pod.KindJob, cron.DefaultedPullPolicies
	out.Owner = &pod.Owner{Kind: cron.Kind, Name: cron.Name, UID: cron.UID}
	return out, nil
}
