package conversion

import (
	"encoding/json"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podrun/podrun/manifest/apiutil"
	"github.com/podrun/podrun/manifest/decode"
	"github.com/podrun/podrun/pod"
)

// WorkloadToKubernetes converts a stored workload to its Kubernetes object.
func WorkloadToKubernetes(stored *pod.Object) (metav1.Object, error) {
	k, ok := decode.KindOf(string(stored.Kind))
	if !ok {
		return nil, fmt.Errorf("decode %s: it is of no known kind", stored.Kind)
	}
	object := k.New()
	spec := workloadSpec(object)
	if spec == nil {
		return nil, fmt.Errorf("decode %s %s: its kind makes no pods", stored.Kind, stored.Name)
	}
	if err := json.Unmarshal(stored.Spec, spec); err != nil {
		return nil, fmt.Errorf("decode %s %s: %w", stored.Kind, stored.Name, err)
	}
	m := apiutil.ObjectMeta(object)
	m.Name, m.Namespace, m.UID, m.Generation = stored.Name, stored.Namespace, uid(stored.UID), stored.Revision
	m.CreationTimestamp = metav1.NewTime(stored.CreatedAt)
	m.Labels, m.Annotations = maps.Clone(stored.Labels), maps.Clone(stored.Annotations)
	if by := stored.Owner; by != nil {
		m.OwnerReferences = []metav1.OwnerReference{OwnerReference(by)}
	}
	setType(object, k.APIVersion, string(stored.Kind))
	return object, nil
}

// WorkloadFromKubernetes converts a workload to the stored form.
func WorkloadFromKubernetes(object metav1.Object) *pod.Object {
	meta := apiutil.ObjectMeta(object)
	out := &pod.Object{Namespace: meta.Namespace, Name: meta.Name, Labels: maps.Clone(meta.Labels), Annotations: maps.Clone(meta.Annotations)}
	out.Spec, _ = json.Marshal(workloadSpec(object)) // it came from JSON
	return out
}

// workloadSpec returns the spec of a workload, for JSON.
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

// PodTemplate returns the template of a workload's pods.
func PodTemplate(object metav1.Object) *corev1.PodTemplateSpec {
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

// setType sets an object's apiVersion and kind.
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

// OwnerReference returns the reference to an object's owner.
func OwnerReference(by *pod.Owner) metav1.OwnerReference {
	k, _ := decode.KindOf(string(by.Kind))
	return metav1.OwnerReference{APIVersion: k.APIVersion, Kind: string(by.Kind), Name: by.Name, UID: uid(by.UID), Controller: new(true), BlockOwnerDeletion: new(true)}
}

func uid(s string) types.UID { return types.UID(s) }
