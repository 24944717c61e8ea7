package workloads

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/manifest/conversion"
	"github.com/podrun/podrun/manifest/podutil"
	"github.com/podrun/podrun/pod"
)

// claimTemplates are those of a workload; nil for all but StatefulSets. Of each every pod has
// a claim of its own, by its ordinal: TEMPLATE-SET-ORDINAL. They stay when the pod goes, and are
// there again when it comes back (pkg/controller/statefulset/stateful_set_utils.go of Kubernetes).
func claimTemplates(object metav1.Object) []corev1.PersistentVolumeClaim {
	if s, ok := object.(*appsv1.StatefulSet); ok {
		return s.Spec.VolumeClaimTemplates
	}
	return nil
}

// MountClaims gives a pod of a workload the volumes of its claims (updateStorage): one of
// the same name in the template gives way.
func MountClaims(p *corev1.PodSpec, object metav1.Object, ordinal int) {
	for _, t := range claimTemplates(object) {
		v := corev1.Volume{Name: t.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: podutil.StatefulSetClaimName(t.Name, object.GetName(), ordinal)},
		}}
		if i := slices.IndexFunc(p.Volumes, func(v corev1.Volume) bool { return v.Name == t.Name }); i >= 0 {
			p.Volumes[i] = v
		} else {
			p.Volumes = append(p.Volumes, v)
		}
	}
}

// NewClaims are the claims that the pod of an ordinal has of a kept StatefulSet. What else
// tells them apart from others, their uids and times, is still to be given.
func NewClaims(set *pod.Object, ordinal int) ([]*pod.Object, error) {
	object, err := conversion.WorkloadToKubernetes(set)
	if err != nil {
		return nil, err
	}
	var list []*pod.Object
	for _, t := range claimTemplates(object) {
		c := t.DeepCopy()
		c.Name, c.Namespace = podutil.StatefulSetClaimName(t.Name, set.Name, ordinal), set.Namespace
		if c.Labels == nil {
			c.Labels = map[string]string{}
		}
		if s := object.(*appsv1.StatefulSet).Spec.Selector; s != nil {
			maps.Copy(c.Labels, s.MatchLabels)
		}
		list = append(list, conversion.FromKubernetes(c))
	}
	return list, nil
}

// ClaimSet is which claims a kept StatefulSet has, and what becomes of them without it.
type ClaimSet struct {
	set         string
	templates   []string
	first, size int

	DeleteWithSet    bool // they go when it is removed
	DeleteWhenScaled bool // those of ordinals that are no longer wanted go with their pods
}

// Ordinal is whose claim it is, by its name; wanted is whether the set has such a pod.
func (c *ClaimSet) Ordinal(claim string) (ordinal int, wanted, ok bool) {
	for _, t := range c.templates {
		text, found := strings.CutPrefix(claim, t+"-"+c.set+"-")
		n, err := strconv.Atoi(text)
		if found && err == nil && strconv.Itoa(n) == text && n >= 0 {
			return n, n >= c.first && n < c.first+c.size, true
		}
	}
	return 0, false, false
}

// ClaimSetOf says of a kept StatefulSet which claims it has; nil: none.
func ClaimSetOf(set *pod.Object) (*ClaimSet, error) {
	object, err := conversion.WorkloadToKubernetes(set)
	if err != nil {
		return nil, err
	}
	templates := claimTemplates(object)
	if len(templates) == 0 {
		return nil, nil
	}
	s := &object.(*appsv1.StatefulSet).Spec
	c := &ClaimSet{set: set.Name, size: int(*s.Replicas)}
	if s.Ordinals != nil {
		c.first = int(s.Ordinals.Start)
	}
	for _, t := range templates {
		c.templates = append(c.templates, t.Name)
	}
	if p := s.PersistentVolumeClaimRetentionPolicy; p != nil {
		c.DeleteWithSet = p.WhenDeleted == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
		c.DeleteWhenScaled = p.WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	}
	return c, nil
}
