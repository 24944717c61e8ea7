package manifest

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/podrun/podrun/internal/manifest/apiutil"
	"github.com/podrun/podrun/internal/manifest/conversion"
	"github.com/podrun/podrun/internal/manifest/defaulting"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/manifest/resources"
	"github.com/podrun/podrun/internal/pod"
)

// Marshal returns a Pod as the JSON that is stored beside its plan.
func Marshal(p *corev1.Pod) ([]byte, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode pod %s: %w", p.Name, err)
	}
	return data, nil
}

// Unmarshal reads the JSON that Marshal wrote. It ignores fields of a newer podrun.
func Unmarshal(data []byte) (*corev1.Pod, error) {
	var p corev1.Pod
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("decode pod: %w", err)
	}
	return &p, nil
}

// LoadRecorded returns the Pod of a text that Marshal wrote after FillSystemFields, as it was loaded.
func LoadRecorded(text []byte) (*Object, error) {
	p, err := Unmarshal(text)
	if err != nil {
		return nil, err
	}
	podutil.ClearSystemFields(p)
	return &Object{File: "pod " + p.Name, Kind: "Pod", Value: p, Pod: p, Effective: resources.ComputeEffective(p)}, nil
}

// NewObject applies defaults to and validates an object that a command made or changed, as Load does with a
// file. It changes the object. The error is an *Errors.
func NewObject(kind string, object metav1.Object) (*Object, error) {
	o := &Object{File: kind + " " + object.GetName(), Kind: kind, Value: object}
	o.Pod, _ = object.(*corev1.Pod)
	errs := &Errors{}
	finishObject(o, "", errs)
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return o, nil
}

// Edit returns a stored object after a change of its Kubernetes form: as Load would return it, with the
// identity of the stored one. The stored one stays as it is. The error is change's, or an *Errors.
func Edit(stored *pod.Object, change func(metav1.Object) error) (*Object, error) {
	object, err := editable(stored)
	if err != nil {
		return nil, err
	}
	before := object.(runtime.Object).DeepCopyObject().(metav1.Object)
	if err := change(object); err != nil {
		return nil, err
	}
	*apiutil.ObjectMeta(before) = *apiutil.ObjectMeta(object)
	content := !equality.Semantic.DeepEqual(before, object)
	o, err := NewObject(string(stored.Kind), object)
	if err != nil {
		return nil, err
	}
	next := *stored
	next.Labels, next.Annotations = o.Stored.Labels, o.Stored.Annotations
	if o.Stored.Endpoints != nil { // the label of an EndpointSlice names its Service
		next.Endpoints = o.Stored.Endpoints
	}
	if content && !o.IsWorkload() {
		next.ConfigMap, next.Secret, next.Claim, next.Service = o.Stored.ConfigMap, o.Stored.Secret, o.Stored.Claim, o.Stored.Service
		next.ServiceAccount, next.PersistentVolume, next.NetworkPolicy = o.Stored.ServiceAccount, o.Stored.PersistentVolume, o.Stored.NetworkPolicy
		next.Spec = o.Stored.Spec
	}
	if o.IsWorkload() {
		next.Spec, next.DefaultedPullPolicies = o.Stored.Spec, o.Stored.DefaultedPullPolicies
	}
	o.Stored = &next
	return o, nil
}

// editable returns a stored object in its Kubernetes form, as it was written: without the pull policies that
// are defaults.
func editable(stored *pod.Object) (metav1.Object, error) {
	if slices.Contains(pod.Workloads(), stored.Kind) {
		object, err := conversion.WorkloadToKubernetes(stored)
		if err == nil {
			defaulting.RestoreUnsetPullPolicies(&conversion.PodTemplate(object).Spec, stored.DefaultedPullPolicies)
		}
		return object, err
	}
	object, err := conversion.ToKubernetes(stored)
	if err != nil {
		return nil, err
	}
	return object.(metav1.Object), nil
}
