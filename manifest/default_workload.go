package manifest

import (
	"math"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// defaultWorkload fills in what the API server fills in when a workload is created
// (pkg/apis/{apps,batch}/v1/defaults.go of Kubernetes).
func defaultWorkload(object metav1.Object) {
	meta := metaOf(object)
	if meta.Namespace == "" {
		meta.Namespace = corev1.NamespaceDefault
	}
	switch o := object.(type) {
	case *appsv1.Deployment:
		o.Status = appsv1.DeploymentStatus{}
		defaultDeployment(&o.Spec)
	case *appsv1.ReplicaSet:
		o.Status = appsv1.ReplicaSetStatus{}
		orDefault(&o.Spec.Replicas, 1)
	case *appsv1.StatefulSet:
		o.Status = appsv1.StatefulSetStatus{}
		defaultStatefulSet(&o.Spec)
	case *appsv1.DaemonSet:
		o.Status = appsv1.DaemonSetStatus{}
		defaultDaemonSet(&o.Spec)
	case *batchv1.Job:
		o.Status = batchv1.JobStatus{}
		defaultJob(&o.Spec)
	case *batchv1.CronJob:
		o.Status = batchv1.CronJobStatus{}
		s := &o.Spec
		if s.ConcurrencyPolicy == "" {
			s.ConcurrencyPolicy = batchv1.AllowConcurrent
		}
		orDefault(&s.Suspend, false)
		orDefault(&s.SuccessfulJobsHistoryLimit, 3)
		orDefault(&s.FailedJobsHistoryLimit, 1)
		defaultJob(&s.JobTemplate.Spec)
	}
}

func orDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

func defaultDeployment(s *appsv1.DeploymentSpec) {
	orDefault(&s.Replicas, 1)
	orDefault(&s.RevisionHistoryLimit, 10)
	orDefault(&s.ProgressDeadlineSeconds, 600)
	if s.Strategy.Type == "" {
		s.Strategy.Type = appsv1.RollingUpdateDeploymentStrategyType
	}
	if s.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		orDefault(&s.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		orDefault(&s.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		orDefault(&s.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
}

func defaultStatefulSet(s *appsv1.StatefulSetSpec) {
	if s.PodManagementPolicy == "" {
		s.PodManagementPolicy = appsv1.OrderedReadyPodManagement
	}
	if s.UpdateStrategy.Type == "" {
		s.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
	}
	if s.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		orDefault(&s.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
		orDefault(&s.UpdateStrategy.RollingUpdate.Partition, 0)
		orDefault(&s.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
	}
	orDefault(&s.Replicas, 1)
	orDefault(&s.RevisionHistoryLimit, 10)
	defaultClaims(s)
}

func defaultDaemonSet(s *appsv1.DaemonSetSpec) {
	if s.UpdateStrategy.Type == "" {
		s.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
	}
	if s.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		orDefault(&s.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		orDefault(&s.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		orDefault(&s.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	orDefault(&s.RevisionHistoryLimit, 10)
}

func defaultJob(s *batchv1.JobSpec) {
	if s.Completions == nil && s.Parallelism == nil {
		s.Completions = new(int32(1))
	}
	orDefault(&s.Parallelism, 1)
	if s.BackoffLimitPerIndex != nil {
		orDefault(&s.BackoffLimit, math.MaxInt32)
	}
	orDefault(&s.BackoffLimit, 6)
	orDefault(&s.CompletionMode, batchv1.NonIndexedCompletion)
	orDefault(&s.Suspend, false)
	if p := s.PodFailurePolicy; p != nil {
		orDefault(&s.PodReplacementPolicy, batchv1.Failed)
		for _, r := range p.Rules {
			for i := range r.OnPodConditions {
				if c := &r.OnPodConditions[i]; c.Status == "" {
					c.Status = corev1.ConditionTrue
				}
			}
		}
	}
	orDefault(&s.PodReplacementPolicy, batchv1.TerminatingOrFailed)
}
