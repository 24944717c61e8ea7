package conversion

import (
	"encoding/json"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podrun/podrun/internal/manifest/apiutil"
	"github.com/podrun/podrun/internal/manifest/decode"
	"github.com/podrun/podrun/internal/pod"
)

// WorkloadToKubernetes converts a stored workload to its Kubernetes object.
func WorkloadToKubernetes(stored *pod.Object) (metav1.Object, error) {
	k, ok := decode.KindOf(string(stored.Kind))
	if !ok {
		return nil, fmt.Errorf("decode %s: unknown kind", stored.Kind)
	}
	object := k.New()
	spec, template := workloadParts(object)
	if template == nil {
		return nil, fmt.Errorf("decode %s %s: its kind has no pod template", stored.Kind, stored.Name)
	}
	if err := decodeSpec(stored, spec); err != nil {
		return nil, err
	}
	m := apiutil.ObjectMeta(object)
	m.Name, m.GenerateName, m.Namespace, m.UID, m.Generation = stored.Name, stored.GenerateName, stored.Namespace, types.UID(stored.UID), stored.Revision
	m.CreationTimestamp = metav1.NewTime(stored.CreatedAt)
	m.Labels, m.Annotations = maps.Clone(stored.Labels), maps.Clone(stored.Annotations)
	if by := stored.Owner; by != nil {
		m.OwnerReferences = []metav1.OwnerReference{OwnerReference(by)}
	}
	object.(runtime.Object).GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(k.APIVersion, string(stored.Kind)))
	return object, nil
}

// WorkloadFromKubernetes converts a workload to the stored form.
func WorkloadFromKubernetes(object metav1.Object) *pod.Object {
	out := objectFromMeta(object)
	spec, _ := workloadParts(object)
	out.Spec, _ = json.Marshal(spec) // it came from JSON
	return out
}

// workloadParts returns a workload's spec, for JSON, and the template of its pods; nil for other kinds.
func workloadParts(object metav1.Object) (spec any, template *corev1.PodTemplateSpec) {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return &o.Spec, &o.Spec.Template
	case *appsv1.ReplicaSet:
		return &o.Spec, &o.Spec.Template
	case *corev1.ReplicationController:
		if o.Spec.Template == nil {
			o.Spec.Template = &corev1.PodTemplateSpec{} // to be refused for what it lacks
		}
		return &o.Spec, o.Spec.Template
	case *appsv1.StatefulSet:
		return &o.Spec, &o.Spec.Template
	case *appsv1.DaemonSet:
		return &o.Spec, &o.Spec.Template
	case *batchv1.Job:
		return &o.Spec, &o.Spec.Template
	case *batchv1.CronJob:
		return &o.Spec, &o.Spec.JobTemplate.Spec.Template
	}
	return nil, nil
}

// PodTemplate returns the template of a workload's pods.
func PodTemplate(object metav1.Object) *corev1.PodTemplateSpec {
	_, template := workloadParts(object)
	return template
}

// OwnerReference returns the reference to an object's owner.
func OwnerReference(by *pod.Owner) metav1.OwnerReference {
	k, _ := decode.KindOf(string(by.Kind))
	return metav1.OwnerReference{APIVersion: k.APIVersion, Kind: string(by.Kind), Name: by.Name, UID: types.UID(by.UID), Controller: new(true), BlockOwnerDeletion: new(true)}
}
