package defaulting

import (
	"maps"
	"math"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podrun/podrun/internal/manifest/apiutil"
)

// SetWorkloadDefaults sets the defaults that the API server sets when a workload is created
// (pkg/apis/{apps,batch}/v1/defaults.go of Kubernetes).
func SetWorkloadDefaults(object metav1.Object) {
	meta := apiutil.ObjectMeta(object)
	if meta.Namespace == "" {
		meta.Namespace = corev1.NamespaceDefault
	}
	switch o := object.(type) {
	case *appsv1.Deployment:
		o.Status = appsv1.DeploymentStatus{}
		defaultDeployment(&o.Spec)
	case *appsv1.ReplicaSet:
		o.Status = appsv1.ReplicaSetStatus{}
		setDefault(&o.Spec.Replicas, 1)
	case *corev1.ReplicationController:
		o.Status = corev1.ReplicationControllerStatus{}
		defaultReplicationController(o)
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
		setDefault(&s.Suspend, false)
		setDefault(&s.SuccessfulJobsHistoryLimit, 3)
		setDefault(&s.FailedJobsHistoryLimit, 1)
		defaultJob(&s.JobTemplate.Spec)
	}
}

func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

func defaultDeployment(s *appsv1.DeploymentSpec) {
	setDefault(&s.Replicas, 1)
	setDefault(&s.RevisionHistoryLimit, 10)
	setDefault(&s.ProgressDeadlineSeconds, 600)
	if s.Strategy.Type == "" {
		s.Strategy.Type = appsv1.RollingUpdateDeploymentStrategyType
	}
	if s.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		setDefault(&s.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		setDefault(&s.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		setDefault(&s.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
}

// defaultReplicationController is SetDefaults_ReplicationController of pkg/apis/core/v1.
func defaultReplicationController(o *corev1.ReplicationController) {
	labels := o.Spec.Template.Labels
	if len(o.Spec.Selector) == 0 && len(labels) > 0 {
		o.Spec.Selector = maps.Clone(labels)
	}
	if len(o.Labels) == 0 && len(labels) > 0 {
		o.Labels = maps.Clone(labels)
	}
	setDefault(&o.Spec.Replicas, 1)
}

func defaultStatefulSet(s *appsv1.StatefulSetSpec) {
	if s.PodManagementPolicy == "" {
		s.PodManagementPolicy = appsv1.OrderedReadyPodManagement
	}
	if s.UpdateStrategy.Type == "" {
		s.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
	}
	if s.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		setDefault(&s.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
		setDefault(&s.UpdateStrategy.RollingUpdate.Partition, 0)
		setDefault(&s.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
	}
	setDefault(&s.Replicas, 1)
	setDefault(&s.RevisionHistoryLimit, 10)
	defaultClaims(s)
}

func defaultDaemonSet(s *appsv1.DaemonSetSpec) {
	if s.UpdateStrategy.Type == "" {
		s.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
	}
	if s.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		setDefault(&s.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		setDefault(&s.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		setDefault(&s.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	setDefault(&s.RevisionHistoryLimit, 10)
}

func defaultJob(s *batchv1.JobSpec) {
	if s.Completions == nil && s.Parallelism == nil {
		s.Completions = new(int32(1))
	}
	setDefault(&s.Parallelism, 1)
	if s.BackoffLimitPerIndex != nil {
		setDefault(&s.BackoffLimit, math.MaxInt32)
	}
	setDefault(&s.BackoffLimit, 6)
	setDefault(&s.CompletionMode, batchv1.NonIndexedCompletion)
	setDefault(&s.Suspend, false)
	if p := s.PodFailurePolicy; p != nil {
		setDefault(&s.PodReplacementPolicy, batchv1.Failed)
		for _, r := range p.Rules {
			for i := range r.OnPodConditions {
				if c := &r.OnPodConditions[i]; c.Status == "" {
					c.Status = corev1.ConditionTrue
				}
			}
		}
	}
	setDefault(&s.PodReplacementPolicy, batchv1.TerminatingOrFailed)
}

// defaultClaims sets the API server's defaults of claim templates (pkg/apis/apps/v1/defaults.go).
func defaultClaims(s *appsv1.StatefulSetSpec) {
	for i := range s.VolumeClaimTemplates {
		c := &s.VolumeClaimTemplates[i]
		SetObjectDefaults(c)
		c.ObjectMeta = metav1.ObjectMeta{Name: c.Name, Labels: c.Labels, Annotations: c.Annotations}
		c.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}
	}
	const retain = appsv1.RetainPersistentVolumeClaimRetentionPolicyType
	if s.PersistentVolumeClaimRetentionPolicy == nil {
		s.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{}
	}
	p := s.PersistentVolumeClaimRetentionPolicy
	if p.WhenDeleted == "" {
		p.WhenDeleted = retain
	}
	if p.WhenScaled == "" {
		p.WhenScaled = retain
	}
}
