package workloads

import (
	"encoding/json"
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/manifest/conversion"
	"github.com/podrun/podrun/internal/manifest/decode"
	"github.com/podrun/podrun/internal/manifest/defaulting"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/manifest/resources"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/workload"
)

// Labels that identify a workload's pods, as Kubernetes' controllers set them.
const (
	labelTemplateHash = "pod-template-hash"
	labelRevisionHash = "controller-revision-hash"
	labelGeneration   = "pod-template-generation"
	labelPodName      = "statefulset.kubernetes.io/pod-name"
	labelPodIndex     = "apps.kubernetes.io/pod-index"
	labelIndex        = "batch.kubernetes.io/job-completion-index"
)

// maxPodNamePrefix is how many characters of a name are kept before a suffix of five or more.
const maxPodNamePrefix = 58

// PodNamePrefix returns the beginning of the names of a workload's pods.
func PodNamePrefix(owner *pod.Object, m workload.Make) string {
	base := owner.Name + "-"
	switch {
	case owner.Kind == pod.KindDeployment:
		base += m.Revision + "-"
	case owner.Kind == pod.KindJob && m.Index >= 0:
		base += strconv.Itoa(m.Index) + "-"
	}
	return NamePrefix(base)
}

// NamePrefix returns as much of the beginning of a name as leaves room for a random suffix
// (SimpleNameGenerator in k8s.io/apiserver/pkg/storage/names).
func NamePrefix(base string) string { return base[:min(len(base), maxPodNamePrefix)] }

// NewPod returns a pod of a stored workload, made from its current or an earlier template. It was validated
// with the workload.
func NewPod(owner *pod.Object, m workload.Make, template []byte, name string) (*decode.Object, error) {
	var t corev1.PodTemplateSpec
	if err := json.Unmarshal(template, &t); err != nil {
		return nil, fmt.Errorf("decode the template of %s %s: %w", owner.Kind, owner.Name, err)
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: owner.Namespace, Labels: t.Labels, Annotations: t.Annotations,
		OwnerReferences: []metav1.OwnerReference{conversion.OwnerReference(&pod.Owner{Kind: owner.Kind, Name: owner.Name, UID: owner.UID})},
	}, Spec: t.Spec}
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	switch owner.Kind {
	case pod.KindDeployment:
		p.Labels[labelTemplateHash] = m.Revision
	case pod.KindDaemonSet:
		p.Labels[labelRevisionHash] = m.Revision
		p.Labels[labelGeneration] = strconv.FormatInt(owner.Revision, 10)
	case pod.KindStatefulSet:
		p.Labels[labelRevisionHash] = owner.Name + "-" + m.Revision
		p.Labels[labelPodName], p.Labels[labelPodIndex] = name, strconv.Itoa(m.Index)
		p.Spec.Hostname = name
		if object, err := conversion.WorkloadToKubernetes(owner); err == nil {
			p.Spec.Subdomain = serviceName(object)
			MountClaims(&p.Spec, object, m.Index)
		}
	case pod.KindJob:
		addJobFields(p, owner, m)
	}
	defaulting.SetDefaultsButPullPolicy(p)
	defaulting.RestoreUnsetPullPolicies(&p.Spec, owner.DefaultedPullPolicies)
	return &decode.Object{File: string(owner.Kind) + " " + owner.Name, Kind: "Pod", Value: p, Pod: p, Effective: resources.ComputeEffective(p)}, nil
}

// addJobFields sets the fields of a Job's pods.
func addJobFields(p *corev1.Pod, owner *pod.Object, m workload.Make) {
	for _, prefix := range []string{"", "batch.kubernetes.io/"} {
		p.Labels[prefix+"job-name"] = owner.Name
		p.Labels[prefix+"controller-uid"] = owner.UID
	}
	if m.Index < 0 {
		return
	}
	number := strconv.Itoa(m.Index)
	p.Labels[labelIndex] = number
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	p.Annotations[labelIndex] = number
	if object, err := conversion.WorkloadToKubernetes(owner); err == nil && object.(*batchv1.Job).Spec.BackoffLimitPerIndex != nil {
		p.Annotations[batchv1.JobIndexFailureCountAnnotation] = strconv.Itoa(m.Failures)
	}
	p.Spec.Hostname = owner.Name + "-" + number
	for c := range podutil.Containers(&p.Spec) {
		c.Env = append(c.Env, corev1.EnvVar{Name: "JOB_COMPLETION_INDEX", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['" + batchv1.JobCompletionIndexAnnotation + "']"},
		}})
	}
}

// SamplePod returns a pod as the workload would make it, without its name: for what all its pods have in
// common, such as images.
func SamplePod(o *decode.Object) *decode.Object {
	p := PodFromTemplate(o.Value)
	p.Name, p.Namespace = o.Name(), o.Value.GetNamespace()
	MountClaims(&p.Spec, o.Value, 0)
	defaulting.SetDefaultsButPullPolicy(p)
	defaulting.RestoreUnsetPullPolicies(&p.Spec, o.Stored.DefaultedPullPolicies)
	return o.ForPod(p)
}

// Controller describes the workload that made a pod.
type Controller struct {
	Owner    pod.Owner
	Revision string
	Index    int // ordinal or completion index; -1: none
}

// ControllerOf returns the controller of a pod; nil: none.
func ControllerOf(p *corev1.Pod) *Controller {
	ref := metav1.GetControllerOf(p)
	if ref == nil {
		return nil
	}
	o := &Controller{Owner: pod.Owner{Kind: pod.ObjectKind(ref.Kind), Name: ref.Name, UID: string(ref.UID)}, Index: -1}
	index := ""
	switch o.Owner.Kind {
	case pod.KindDeployment:
		o.Revision = p.Labels[labelTemplateHash]
	case pod.KindDaemonSet:
		o.Revision = p.Labels[labelRevisionHash]
	case pod.KindStatefulSet:
		o.Revision = p.Labels[labelRevisionHash]
		if n := len(ref.Name) + 1; len(o.Revision) > n {
			o.Revision = o.Revision[n:]
		}
		index = p.Labels[labelPodIndex]
	case pod.KindJob:
		index = p.Labels[labelIndex]
	}
	if n, err := strconv.Atoi(index); err == nil {
		o.Index = n
	}
	return o
}

// PodFromTemplate returns a pod as the workload would make it, without its name.
func PodFromTemplate(object metav1.Object) *corev1.Pod {
	t := conversion.PodTemplate(object).DeepCopy()
	p := &corev1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec}
	p.Name, p.Namespace, p.GenerateName = "sample", "", ""
	return p
}
