package workloads

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

	"github.com/podrun/podrun/internal/manifest/conversion"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/workload"
)

// NewSpec returns the spec of a stored workload, for workload.Decide. The time zone of a CronJob's schedule
// is not set yet.
func NewSpec(stored *pod.Object) (*workload.Spec, error) {
	object, err := conversion.WorkloadToKubernetes(stored)
	if err != nil {
		return nil, err
	}
	s := &workload.Spec{
		Kind: stored.Kind, Namespace: stored.Namespace, Name: stored.Name, Generation: stored.Revision, Deleting: stored.Deleting,
		Strategy: workload.Rolling, Cause: stored.Annotations[ChangeCause],
	}
	if s.Template, err = json.Marshal(conversion.PodTemplate(object)); err != nil {
		return nil, fmt.Errorf("encode the template of %s %s: %w", stored.Kind, stored.Name, err)
	}
	s.Revision = templateHash(s.Template)
	switch o := object.(type) {
	case *appsv1.Deployment:
		specDeployment(s, &o.Spec)
	case *appsv1.ReplicaSet:
		s.Replicas, s.MinReady = int(*o.Spec.Replicas), seconds(o.Spec.MinReadySeconds)
	case *corev1.ReplicationController:
		s.Replicas, s.MinReady = int(*o.Spec.Replicas), seconds(o.Spec.MinReadySeconds)
	case *appsv1.StatefulSet:
		specStatefulSet(s, &o.Spec)
	case *appsv1.DaemonSet:
		s.Replicas, s.MinReady, s.History = 1, seconds(o.Spec.MinReadySeconds), int(*o.Spec.RevisionHistoryLimit)
		s.Strategy = workload.Strategy(o.Spec.UpdateStrategy.Type)
		if roll := o.Spec.UpdateStrategy.RollingUpdate; roll != nil {
			s.MaxSurge = scaledValue(roll.MaxSurge, 1, true)
		}
	case *batchv1.Job:
		s.Job = specJob(&o.Spec)
	case *batchv1.CronJob:
		s.Cron = specCron(o)
	}
	return s, nil
}

// templateHash returns a name for a template, of six to ten letters and digits (as ComputeHash in
// pkg/controller of Kubernetes).
func templateHash(template []byte) string {
	h := fnv.New32a()
	h.Write(template)
	return rand.SafeEncodeString(fmt.Sprint(h.Sum32()))
}

func seconds[T int32 | int64](n T) time.Duration { return time.Duration(n) * time.Second }

// scaledValue returns a number of pods, or the percentage of total.
func scaledValue(v *intstr.IntOrString, total int, up bool) int {
	if v == nil {
		return 0
	}
	n, _ := intstr.GetScaledValueFromIntOrPercent(v, total, up) // it was validated
	return n
}

func specDeployment(s *workload.Spec, d *appsv1.DeploymentSpec) {
	s.Replicas, s.MinReady, s.Paused, s.History = int(*d.Replicas), seconds(d.MinReadySeconds), d.Paused, int(*d.RevisionHistoryLimit)
	s.Strategy = workload.Strategy(d.Strategy.Type)
	if p := *d.ProgressDeadlineSeconds; p < math.MaxInt32 { // MaxInt32 means none
		s.ProgressDeadline = seconds(p)
	}
	if roll := d.Strategy.RollingUpdate; roll != nil {
		s.MaxSurge = scaledValue(roll.MaxSurge, s.Replicas, true)
		s.MaxUnavailable = min(scaledValue(roll.MaxUnavailable, s.Replicas, false), s.Replicas)
		if s.MaxSurge == 0 && s.MaxUnavailable == 0 { // ResolveFenceposts of Kubernetes: otherwise no pod could be replaced
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
		s.MaxUnavailable = max(scaledValue(roll.MaxUnavailable, s.Replicas, false), 1) // getStatefulSetMaxUnavailable
	}
}

// serviceName returns the Service of a StatefulSet.
func serviceName(object metav1.Object) string {
	if s, ok := object.(*appsv1.StatefulSet); ok {
		return s.Spec.ServiceName
	}
	return ""
}

// TimeZoneOf returns the time zone that a stored CronJob names, or "".
func TimeZoneOf(stored *pod.Object) (string, error) {
	object, err := conversion.WorkloadToKubernetes(stored)
	if err != nil {
		return "", err
	}
	if c, ok := object.(*batchv1.CronJob); ok && c.Spec.TimeZone != nil {
		return *c.Spec.TimeZone, nil
	}
	return "", nil
}
