package manifest

import (
	"encoding/json"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/pod"
)

// samplePod is a pod that a workload would make, but for its name.
func samplePod(object metav1.Object) *corev1.Pod {
	t := templateOf(object).DeepCopy()
	p := &corev1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec}
	p.Name, p.Namespace, p.GenerateName = "sample", "", ""
	return p
}

// templateOf finds the template of a workload's pods.
func templateOf(object metav1.Object) *corev1.PodTemplateSpec {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return &o.Spec.Template
	case *appsv1.ReplicaSet:
		return &o.Spec.Template
	case *appsv1.StatefulSet:
		return &o.Spec.Template
	case *appsv1.DaemonSet:
		return &o.Spec.Template
	case *batchv1.Job:
		return &o.Spec.Template
	case *batchv1.CronJob:
		return &o.Spec.JobTemplate.Spec.Template
	}
	return nil
}

// workloadSpec is the spec of a workload, for JSON.
func workloadSpec(object metav1.Object) any {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return &o.Spec
	case *appsv1.ReplicaSet:
		return &o.Spec
	case *appsv1.StatefulSet:
		return &o.Spec
	case *appsv1.DaemonSet:
		return &o.Spec
	case *batchv1.Job:
		return &o.Spec
	case *batchv1.CronJob:
		return &o.Spec
	}
	return nil
}

// storedWorkload is a workload as it is kept.
func storedWorkload(object metav1.Object) *pod.Object {
	meta := metaOf(object)
	out := &pod.Object{Namespace: meta.Namespace, Name: meta.Name, Labels: maps.Clone(meta.Labels), Annotations: maps.Clone(meta.Annotations)}
	out.Spec, _ = json.Marshal(workloadSpec(object)) // it came from JSON
	return out
}

// Workload gives a kept workload as the Kubernetes object that it is.
func Workload(stored *pod.Object) (metav1.Object, error) {
	k, ok := kindOf(string(stored.Kind))
	if !ok {
		return nil, fmt.Errorf("decode %s: it is of no known kind", stored.Kind)
	}
	object := k.make()
	spec := workloadSpec(object)
	if spec == nil {
		return nil, fmt.Errorf("decode %s %s: its kind makes no pods", stored.Kind, stored.Name)
	}
	if err := json.Unmarshal(stored.Spec, spec); err != nil {
		return nil, fmt.Errorf("decode %s %s: %w", stored.Kind, stored.Name, err)
	}
	m := metaOf(object)
	m.Name, m.Namespace, m.UID, m.Generation = stored.Name, stored.Namespace, uid(stored.UID), stored.Revision
	m.CreationTimestamp = metav1.NewTime(stored.CreatedAt)
	m.Labels, m.Annotations = maps.Clone(stored.Labels), maps.Clone(stored.Annotations)
	if by := stored.Owner; by != nil {
		m.OwnerReferences = []metav1.OwnerReference{ownerReference(by)}
	}
	setType(object, k.apiVersion, string(stored.Kind))
	return object, nil
}

// setType says in an object what it is.
func setType(object metav1.Object, apiVersion, kind string) {
	t := metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
	switch o := object.(type) {
	case *appsv1.Deployment:
		o.TypeMeta = t
	case *appsv1.ReplicaSet:
		o.TypeMeta = t
	case *appsv1.StatefulSet:
		o.TypeMeta = t
	case *appsv1.DaemonSet:
		o.TypeMeta = t
	case *batchv1.Job:
		o.TypeMeta = t
	case *batchv1.CronJob:
		o.TypeMeta = t
	}
}
