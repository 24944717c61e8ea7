package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/pod"
)

// apparmorOf is the profile that counts for a container: its own, then that of the old
// annotation, then the pod's (GetProfile in pkg/security/apparmor); nil is none.
func apparmorOf(p *corev1.Pod, c *corev1.Container) *corev1.AppArmorProfile {
	if sc := c.SecurityContext; sc != nil && sc.AppArmorProfile != nil {
		return sc.AppArmorProfile
	}
	if profile := annotatedAppArmor(p, c.Name); profile != nil {
		return profile
	}
	if sc := p.Spec.SecurityContext; sc != nil {
		return sc.AppArmorProfile
	}
	return nil
}

const appArmorAnnotation = corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix

// annotatedAppArmor is the profile that the old annotation names for a container, or nil.
func annotatedAppArmor(p *corev1.Pod, container string) *corev1.AppArmorProfile {
	value := p.Annotations[appArmorAnnotation+container]
	name, local := strings.CutPrefix(value, corev1.DeprecatedAppArmorBetaProfileNamePrefix)
	switch {
	case local:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: &name}
	case value == corev1.DeprecatedAppArmorBetaProfileRuntimeDefault:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}
	case value == corev1.DeprecatedAppArmorBetaProfileNameUnconfined:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
	}
	return nil
}

// appArmor is what the Plan says of a container's profile.
func (b *builder) appArmor() string {
	profile := apparmorOf(b.pod, b.c)
	switch {
	case profile == nil:
		return ""
	case profile.Type == corev1.AppArmorProfileTypeRuntimeDefault:
		return pod.AppArmorDefault
	case profile.Type == corev1.AppArmorProfileTypeLocalhost && profile.LocalhostProfile != nil:
		return *profile.LocalhostProfile
	}
	return ""
}

// validateAppArmor is ValidateAppArmorProfileField in pkg/apis/core/validation.
func validateAppArmor(profile *corev1.AppArmorProfile, at *field.Path) field.ErrorList {
	if profile == nil {
		return nil
	}
	const maxName = 4095
	kind, name := at.Child("type"), at.Child("localhostProfile")
	if profile.Type == "" {
		return field.ErrorList{field.Required(kind, "type is required when appArmorProfile is set")}
	}
	errs := oneOf(profile.Type, kind, corev1.AppArmorProfileTypeLocalhost, corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeUnconfined)
	local, given := profile.Type == corev1.AppArmorProfileTypeLocalhost, profile.LocalhostProfile
	switch {
	case !local && given != nil:
		errs = append(errs, field.Invalid(name, *given, "can only be set when AppArmor type is Localhost"))
	case local && (given == nil || *given == ""):
		errs = append(errs, field.Required(name, "must be set when AppArmor type is Localhost"))
	case local && strings.TrimSpace(*given) != *given:
		errs = append(errs, field.Invalid(name, *given, "must not be padded with whitespace"))
	case local && len(*given) > maxName:
		errs = append(errs, field.TooLong(name, "", maxName))
	case local && strings.ContainsAny(*given, "\x00\n"):
		errs = append(errs, field.Invalid(name, *given, "is not the name of a profile"))
	}
	return errs
}

// validateAppArmorAnnotations is ValidateAppArmorPodAnnotations and
// validateAppArmorAnnotationsAndFieldsMatchOnCreate.
func validateAppArmorAnnotations(p *corev1.Pod) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(p.Annotations)) {
		value := p.Annotations[key]
		name, ok := strings.CutPrefix(key, appArmorAnnotation)
		if !ok {
			continue
		}
		at := field.NewPath("metadata", "annotations").Key(key)
		all := slices.Concat(p.Spec.InitContainers, p.Spec.Containers)
		i := slices.IndexFunc(all, func(c corev1.Container) bool { return c.Name == name })
		if i < 0 {
			errs = append(errs, field.Invalid(at, name, "container not found"))
			continue
		}
		annotated := annotatedAppArmor(p, name)
		if local := annotated != nil && annotated.LocalhostProfile != nil; annotated == nil && value != "" || local && strings.TrimSpace(*annotated.LocalhostProfile) == "" {
			errs = append(errs, field.Invalid(at, value, fmt.Sprintf("invalid AppArmor profile name: %q", value)))
			continue
		}
		bare := *p
		bare.Annotations = nil
		if set := apparmorOf(&bare, &all[i]); set != nil && annotated != nil && appArmorText(set) != appArmorText(annotated) {
			errs = append(errs, field.Forbidden(at, "apparmor type in annotation and field must match"))
		}
	}
	return errs
}

func appArmorText(p *corev1.AppArmorProfile) string {
	return string(p.Type) + "/" + *cmp.Or(p.LocalhostProfile, new(string))
}
