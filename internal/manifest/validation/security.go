package validation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/manifest/podutil"
)

func validatePodSecurity(sc *corev1.PodSecurityContext, hostIPC bool, path *field.Path) field.ErrorList {
	if sc == nil {
		return nil
	}
	errs := validateIDs(sc.RunAsUser, sc.RunAsGroup, path)
	for i, gid := range sc.SupplementalGroups {
		errs = append(errs, checkRule(gid, path.Child("supplementalGroups").Index(i), validation.IsValidGroupID)...)
	}
	errs = append(errs, checkPointer(sc.FSGroup, path.Child("fsGroup"), validation.IsValidGroupID)...)
	errs = append(errs, optionalOneOf(sc.FSGroupChangePolicy, path.Child("fsGroupChangePolicy"), corev1.FSGroupChangeAlways, corev1.FSGroupChangeOnRootMismatch)...)
	errs = append(errs, optionalOneOf(sc.SupplementalGroupsPolicy, path.Child("supplementalGroupsPolicy"), corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict)...)
	errs = append(errs, optionalOneOf(sc.SELinuxChangePolicy, path.Child("seLinuxChangePolicy"), corev1.SELinuxChangePolicyRecursive, corev1.SELinuxChangePolicyMountOption)...)
	errs = append(errs, validateSysctls(sc.Sysctls, hostIPC, path.Child("sysctls"))...)
	errs = append(errs, validateAppArmor(sc.AppArmorProfile, path.Child("appArmorProfile"))...)
	return append(errs, validateSeccomp(sc.SeccompProfile, path.Child("seccompProfile"))...)
}

func validateSecurity(sc *corev1.SecurityContext, path *field.Path) field.ErrorList {
	if sc == nil {
		return nil
	}
	errs := validateIDs(sc.RunAsUser, sc.RunAsGroup, path)
	errs = append(errs, optionalOneOf(sc.ProcMount, path.Child("procMount"), corev1.DefaultProcMount, corev1.UnmaskedProcMount)...)
	if !ptr.Deref(sc.AllowPrivilegeEscalation, true) && ptr.Deref(sc.Privileged, false) {
		errs = append(errs, field.Forbidden(path, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"))
	}
	if caps := sc.Capabilities; caps != nil {
		errs = append(errs, validateCapabilities(caps.Add, path.Child("capabilities", "add"))...)
		errs = append(errs, validateCapabilities(caps.Drop, path.Child("capabilities", "drop"))...)
	}
	errs = append(errs, validateAppArmor(sc.AppArmorProfile, path.Child("appArmorProfile"))...)
	return append(errs, validateSeccomp(sc.SeccompProfile, path.Child("seccompProfile"))...)
}

// validateProcMount refuses an unmasked /proc without a user namespace of the pod's own (validateSecurityContext in
// pkg/apis/core/validation): it would make root's containers root of the host.
func validateProcMount(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	if !ptr.Deref(s.HostUsers, true) {
		return nil
	}
	var errs field.ErrorList
	check := func(sc *corev1.SecurityContext, fieldPath *field.Path) {
		if sc != nil && ptr.Deref(sc.ProcMount, "") == corev1.UnmaskedProcMount {
			errs = append(errs, field.Invalid(fieldPath.Child("securityContext", "procMount"), *sc.ProcMount, "`hostUsers` must be false to use `Unmasked`"))
		}
	}
	for i := range s.Containers {
		check(s.Containers[i].SecurityContext, path.Child("containers").Index(i))
	}
	for i := range s.InitContainers {
		check(s.InitContainers[i].SecurityContext, path.Child("initContainers").Index(i))
	}
	for i := range s.EphemeralContainers {
		check(s.EphemeralContainers[i].SecurityContext, path.Child("ephemeralContainers").Index(i))
	}
	return errs
}

// validateCapabilities refuses names that the kernel does not have. It is podrun's own rule: other runtimes
// drop them silently.
func validateCapabilities(list []corev1.Capability, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, c := range list {
		name := strings.ToUpper(string(c))
		switch bare, prefixed := strings.CutPrefix(name, "CAP_"); {
		case name == "ALL" || podutil.AllCapabilities.Has(name):
		case prefixed && podutil.AllCapabilities.Has(bare):
			errs = append(errs, field.Invalid(path.Index(i), string(c), "is written without CAP_: "+bare))
		default:
			errs = append(errs, field.Invalid(path.Index(i), string(c), "is not a Linux capability"))
		}
	}
	return errs
}

func validateIDs(user, group *int64, path *field.Path) field.ErrorList {
	errs := checkPointer(user, path.Child("runAsUser"), validation.IsValidUserID)
	return append(errs, checkPointer(group, path.Child("runAsGroup"), validation.IsValidGroupID)...)
}

// validateHostPID checks hostPID as ValidatePodSpec of pkg/apis/core/validation does.
func validateHostPID(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	if s.HostPID && ptr.Deref(s.ShareProcessNamespace, false) {
		return field.ErrorList{field.Invalid(path.Child("shareProcessNamespace"), true, "ShareProcessNamespace and HostPID cannot both be enabled")}
	}
	return nil
}

// validateHostUsers is the function of that name in pkg/apis/core/validation for a pod with a user namespace
// of its own, and has podrun's own rules: an ordinary user cannot map the owners of files on a disk, so such
// a pod has only volumes that are made for it.
func validateHostUsers(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	if ptr.Deref(s.HostUsers, true) {
		return nil
	}
	const condition = "when `hostUsers` is false"
	errs := forbidFields(path, condition, setField{"hostNetwork", s.HostNetwork}, setField{"hostPID", s.HostPID}, setField{"hostIPC", s.HostIPC})
	for i, v := range s.Volumes {
		errs = append(errs, forbidFields(path.Child("volumes").Index(i), condition+": its files belong to none of the pod's own users",
			setField{"hostPath", v.HostPath != nil}, setField{"persistentVolumeClaim", v.PersistentVolumeClaim != nil})...)
	}
	return errs
}

// validateAppArmor is ValidateAppArmorProfileField of pkg/apis/core/validation.
func validateAppArmor(profile *corev1.AppArmorProfile, fieldPath *field.Path) field.ErrorList {
	if profile == nil {
		return nil
	}
	const maxName = 4095
	kind, name := fieldPath.Child("type"), fieldPath.Child("localhostProfile")
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
		name, ok := strings.CutPrefix(key, podutil.AppArmorAnnotationPrefix)
		if !ok {
			continue
		}
		fieldPath := field.NewPath("metadata", "annotations").Key(key)
		all := slices.Concat(p.Spec.InitContainers, p.Spec.Containers)
		i := slices.IndexFunc(all, func(c corev1.Container) bool { return c.Name == name })
		if i < 0 {
			errs = append(errs, field.Invalid(fieldPath, name, "container not found"))
			continue
		}
		annotated := podutil.AppArmorFromAnnotation(p, name)
		if local := annotated != nil && annotated.LocalhostProfile != nil; annotated == nil && value != "" || local && strings.TrimSpace(*annotated.LocalhostProfile) == "" {
			errs = append(errs, field.Invalid(fieldPath, value, fmt.Sprintf("invalid AppArmor profile name: %q", value)))
			continue
		}
		bare := *p
		bare.Annotations = nil
		if set := podutil.AppArmorProfile(&bare, &all[i]); set != nil && annotated != nil && appArmorText(set) != appArmorText(annotated) {
			errs = append(errs, field.Forbidden(fieldPath, "apparmor type in annotation and field must match"))
		}
	}
	return errs
}

func appArmorText(p *corev1.AppArmorProfile) string {
	return string(p.Type) + "/" + *cmp.Or(p.LocalhostProfile, new(string))
}

// validateSeccomp is validateSeccompProfileField of pkg/apis/core/validation.
func validateSeccomp(s *corev1.SeccompProfile, fieldPath *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	kind, file := fieldPath.Child("type"), fieldPath.Child("localhostProfile")
	if s.Type == "" {
		return field.ErrorList{field.Required(kind, "type is required when seccompProfile is set")}
	}
	errs := oneOf(s.Type, kind, corev1.SeccompProfileTypeLocalhost, corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeUnconfined)
	switch {
	case s.Type != corev1.SeccompProfileTypeLocalhost && s.LocalhostProfile != nil:
		errs = append(errs, field.Invalid(file, *s.LocalhostProfile, "can only be set when seccomp type is Localhost"))
	case s.Type == corev1.SeccompProfileTypeLocalhost && (s.LocalhostProfile == nil || *s.LocalhostProfile == ""):
		errs = append(errs, field.Required(file, "must be set when seccomp type is Localhost"))
	case s.Type == corev1.SeccompProfileTypeLocalhost:
		errs = append(errs, validateRelativePath(*s.LocalhostProfile, file)...)
	}
	return errs
}
