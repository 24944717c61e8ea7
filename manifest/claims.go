package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

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

// claimName names the claim of one template for the pod of one ordinal.
func claimName(template, set string, ordinal int) string {
	return template + "-" + set + "-" + strconv.Itoa(ordinal)
}

// mountClaims gives a pod of a workload the volumes of its claims (updateStorage): one of
// the same name in the template gives way.
func mountClaims(p *corev1.PodSpec, object metav1.Object, ordinal int) {
	for _, t := range claimTemplates(object) {
		v := corev1.Volume{Name: t.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(t.Name, object.GetName(), ordinal)},
		}}
		if i := slices.IndexFunc(p.Volumes, func(v corev1.Volume) bool { return v.Name == t.Name }); i >= 0 {
			p.Volumes[i] = v
		} else {
			p.Volumes = append(p.Volumes, v)
		}
	}
}

// ClaimsOf are the claims that the pod of an ordinal has of a kept StatefulSet. What else
// tells them apart from others, their uids and times, is still to be given.
func ClaimsOf(set *pod.Object, ordinal int) ([]*pod.Object, error) {
	object, err := Workload(set)
	if err != nil {
		return nil, err
	}
	var list []*pod.Object
	for _, t := range claimTemplates(object) {
		c := t.DeepCopy()
		c.Name, c.Namespace = claimName(t.Name, set.Name, ordinal), set.Namespace
		if c.Labels == nil {
			c.Labels = map[string]string{}
		}
		if s := object.(*appsv1.StatefulSet).Spec.Selector; s != nil {
			maps.Copy(c.Labels, s.MatchLabels)
		}
		list = append(list, stored(c))
	}
	return list, nil
}

// Claims is which claims a kept StatefulSet has, and what becomes of them without it.
type Claims struct {
	set         string
	templates   []string
	first, size int

	DropDeleted bool // they go when it is removed
	DropScaled  bool // those of ordinals that are no longer wanted go with their pods
}

// ClaimsWith says of a kept StatefulSet which claims it has; nil: none.
func ClaimsWith(set *pod.Object) (*Claims, error) {
	object, err := Workload(set)
	if err != nil {
		return nil, err
	}
	templates := claimTemplates(object)
	if len(templates) == 0 {
		return nil, nil
	}
	s := &object.(*appsv1.StatefulSet).Spec
	c := &Claims{set: set.Name, size: int(*s.Replicas)}
	if s.Ordinals != nil {
		c.first = int(s.Ordinals.Start)
	}
	for _, t := range templates {
		c.templates = append(c.templates, t.Name)
	}
	if p := s.PersistentVolumeClaimRetentionPolicy; p != nil {
		c.DropDeleted = p.WhenDeleted == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
		c.DropScaled = p.WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	}
	return c, nil
}

// Ordinal is whose claim it is, by its name; wanted is whether the set has such a pod.
func (c *Claims) Ordinal(claim string) (ordinal int, wanted, ok bool) {
	for _, t := range c.templates {
		text, found := strings.CutPrefix(claim, t+"-"+c.set+"-")
		n, err := strconv.Atoi(text)
		if found && err == nil && strconv.Itoa(n) == text && n >= 0 {
			return n, n >= c.first && n < c.first+c.size, true
		}
	}
	return 0, false, false
}

// defaultClaims fills in what the API server does (pkg/apis/apps/v1/defaults.go).
func defaultClaims(s *appsv1.StatefulSetSpec) {
	for i := range s.VolumeClaimTemplates {
		c := &s.VolumeClaimTemplates[i]
		DefaultObject(c)
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

// validateClaims checks the templates of a StatefulSet as the claims that they become.
// The API server finds out only when it is to make them.
func validateClaims(s *appsv1.StatefulSetSpec, set string, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i := range s.VolumeClaimTemplates {
		c := &s.VolumeClaimTemplates[i]
		at := spec.Child("volumeClaimTemplates").Index(i)
		name := at.Child("metadata", "name")
		switch {
		case c.Name == "":
			errs = append(errs, field.Required(name, ""))
		case seen[c.Name]:
			errs = append(errs, field.Duplicate(name, c.Name))
		default: // it is the name of a volume, too
			errs = append(errs, named(c.Name, name, validation.IsDNS1123Label)...)
		}
		seen[c.Name] = true
		for _, text := range validation.IsDNS1123Subdomain(claimName(c.Name, set, maxPods)) {
			errs = append(errs, field.Invalid(name, c.Name, fmt.Sprintf("PVC name %q: %s", claimName(c.Name, set, maxPods), text)))
		}
		errs = append(errs, validateClaimSpec(&c.Spec, at.Child("spec"))...)
	}
	p, at := s.PersistentVolumeClaimRetentionPolicy, spec.Child("persistentVolumeClaimRetentionPolicy")
	const retain, drop = appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	errs = append(errs, oneOf(p.WhenDeleted, at.Child("whenDeleted"), retain, drop)...)
	return append(errs, oneOf(p.WhenScaled, at.Child("whenScaled"), retain, drop)...)
}

// claimTemplateRows: what a claim may say, its template may.
func claimTemplateRows() []Field {
	const path = "spec.volumeClaimTemplates[]"
	rows := []Field{{Path: "spec.volumeClaimTemplates", Support: Done, Note: "each pod has a claim of its own, TEMPLATE-SET-ORDINAL, which stays when the pod goes"}}
	for _, r := range below(path, slices.Concat(objectRows("PersistentVolumeClaim"), claimRows)) {
		switch r.Path {
		case path + ".metadata.namespace", path + ".metadata.generateName":
			r.Support, r.Note = Accepted, "a claim is named after the template and the pod, and lives in its namespace"
		}
		rows = append(rows, r)
	}
	return append(rows,
		Field{Path: "spec.persistentVolumeClaimRetentionPolicy", Support: Done},
		Field{Path: "spec.persistentVolumeClaimRetentionPolicy.whenDeleted", Support: Done, Note: "Retain (default) or Delete"},
		Field{Path: "spec.persistentVolumeClaimRetentionPolicy.whenScaled", Support: Done, Note: "Retain (default) or Delete"})
}
