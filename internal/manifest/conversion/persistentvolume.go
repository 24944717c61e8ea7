package conversion

import (
	"cmp"
	"path"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/manifest/apiutil"
	"github.com/podrun/podrun/internal/pod"
)

// volumeFromKubernetes returns the stored form of a PersistentVolume, and its spec without the claim, which
// changes when the volume is bound.
func volumeFromKubernetes(o *corev1.PersistentVolume) (*pod.PersistentVolume, corev1.PersistentVolumeSpec) {
	s := o.Spec
	v := &pod.PersistentVolume{
		Capacity: s.Capacity.Storage().Value(), AccessModes: accessModes(s.AccessModes),
		Class: s.StorageClassName, AttributesClass: ptr.Deref(s.VolumeAttributesClassName, ""),
		ReclaimPolicy: string(s.PersistentVolumeReclaimPolicy),
	}
	if class, ok := o.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		v.Class = class
	}
	if set := apiutil.SetFields(s.PersistentVolumeSource); len(set) > 0 {
		v.Source = set[0]
	}
	switch {
	case s.HostPath != nil:
		v.Path, v.PathType = path.Clean(s.HostPath.Path), string(ptr.Deref(s.HostPath.Type, ""))
	case s.Local != nil:
		v.Path, v.PathType = path.Clean(s.Local.Path), string(corev1.HostPathDirectory)
	}
	if r := s.ClaimRef; r != nil {
		v.Claim = &pod.ClaimRef{Namespace: r.Namespace, Name: r.Name, UID: string(r.UID)}
		s.ClaimRef = nil
	}
	return v, s
}

// volumeToKubernetes returns the Kubernetes form of a PersistentVolume, with its phase if that is known.
func volumeToKubernetes(o *pod.Object, out *corev1.PersistentVolume) error {
	if err := decodeSpec(o, &out.Spec); err != nil {
		return err
	}
	if c := o.PersistentVolume.Claim; c != nil {
		out.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: string(pod.KindClaim), Namespace: c.Namespace, Name: c.Name, UID: types.UID(c.UID)}
	}
	out.Status.Phase = corev1.PersistentVolumePhase(o.PersistentVolume.Phase)
	return nil
}

// claimToKubernetes returns the Kubernetes form of a claim, with its status if that is known.
func claimToKubernetes(o *pod.Object, out *corev1.PersistentVolumeClaim) error {
	if err := decodeSpec(o, &out.Spec); err != nil {
		return err
	}
	st := &out.Status
	st.Phase = corev1.ClaimPending
	if !o.Claim.Bound {
		return nil
	}
	st.Phase, st.AccessModes, st.Capacity = corev1.ClaimBound, out.Spec.AccessModes, out.Spec.Resources.Requests
	if v := o.Claim.Volume; v != nil {
		bound := &corev1.PersistentVolume{}
		if err := decodeSpec(v, &bound.Spec); err != nil {
			return err
		}
		out.Spec.VolumeName, st.AccessModes, st.Capacity = v.Name, bound.Spec.AccessModes, bound.Spec.Capacity
	}
	return nil
}

// IsOnNode reports whether a PersistentVolume is on a node: whether its nodeAffinity, if it has one, matches
// the node's name and labels (CheckNodeAffinity in pkg/volume/util of Kubernetes).
func IsOnNode(v *corev1.PersistentVolume, name string, labels map[string]string) bool {
	if v.Spec.NodeAffinity == nil || v.Spec.NodeAffinity.Required == nil {
		return true
	}
	return slices.ContainsFunc(v.Spec.NodeAffinity.Required.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool {
		unmet := func(has map[string]string) func(r corev1.NodeSelectorRequirement) bool {
			return func(r corev1.NodeSelectorRequirement) bool { return !isMet(&r, has) }
		}
		return len(t.MatchExpressions)+len(t.MatchFields) > 0 && // a term without conditions matches no node
			!slices.ContainsFunc(t.MatchExpressions, unmet(labels)) &&
			!slices.ContainsFunc(t.MatchFields, unmet(map[string]string{"metadata.name": name}))
	})
}

func isMet(r *corev1.NodeSelectorRequirement, labels map[string]string) bool {
	value, has := labels[r.Key]
	if r.Operator == corev1.NodeSelectorOpGt || r.Operator == corev1.NodeSelectorOpLt {
		a, aerr := strconv.ParseInt(value, 10, 64)
		b, berr := strconv.ParseInt(r.Values[0], 10, 64) // validation ensures that there is one
		order := cmp.Compare(a, b)
		return has && aerr == nil && berr == nil && (order > 0 && r.Operator == corev1.NodeSelectorOpGt || order < 0 && r.Operator == corev1.NodeSelectorOpLt)
	}
	selector := pod.Selector{Requirements: []pod.Requirement{{Key: r.Key, Operator: string(r.Operator), Values: r.Values}}}
	return selector.Matches(labels)
}
