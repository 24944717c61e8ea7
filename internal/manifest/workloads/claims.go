package workloads

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/manifest/conversion"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

// claimTemplates returns a workload's claim templates; nil for all but StatefulSets. Every pod has its own
// claim of each, named by its ordinal: TEMPLATE-SET-ORDINAL. The claims stay when the pod is removed, and
// are used again when it returns (pkg/controller/statefulset/stateful_set_utils.go of Kubernetes).
func claimTemplates(object metav1.Object) []corev1.PersistentVolumeClaim {
	if s, ok := object.(*appsv1.StatefulSet); ok {
		return s.Spec.VolumeClaimTemplates
	}
	return nil
}

// MountClaims adds the volumes of its claims to a pod of a workload (updateStorage): they replace volumes
// with the same names.
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

// NewClaims returns the claims of the pod with an ordinal of a stored StatefulSet. Their uids and times are
// not set yet.
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

// ClaimSet describes the claims of a stored StatefulSet, and when they are removed.
type ClaimSet struct {
	set         string
	templates   []string
	first, size int

	DeleteWithSet    bool // they are removed with the set
	DeleteWhenScaled bool // claims of surplus ordinals are removed with their pods
}

// Ordinal parses a claim's name. wanted reports whether the set has a pod with this ordinal.
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

// ClaimSetOf returns the claims of a stored StatefulSet; nil: none.
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
