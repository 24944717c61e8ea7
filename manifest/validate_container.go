package manifest

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// sidecar says whether an init container keeps running beside the app containers
// (KEP-753).
func sidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// sidecarOf says whether c is an init container of p that keeps running. An app container
// with the same restartPolicy is none: it is restarted by its own policy (KEP-5307).
func sidecarOf(p *corev1.Pod, c *corev1.Container) bool {
	return sidecar(c) && slices.ContainsFunc(p.Spec.InitContainers, func(i corev1.Container) bool { return i.Name == c.Name })
}

func validateContainers(s *corev1.PodSpec, volumes map[string]*corev1.Volume, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	apps := path.Child("containers")
	if len(s.Containers) == 0 {
		errs = append(errs, field.Required(apps, ""))
	}
	// Names are unique over both lists; app containers are looked at first.
	names := sets.New[string]()
	for i := range s.Containers {
		errs = append(errs, validateContainer(&s.Containers[i], volumes, names, apps.Index(i))...)
		errs = append(errs, validateRestart(&s.Containers[i], false, apps.Index(i))...)
		errs = append(errs, validateAsked(&s.Containers[i], s, apps.Index(i))...)
	}
	for i := range s.InitContainers {
		c, at := &s.InitContainers[i], path.Child("initContainers").Index(i)
		errs = append(errs, validateContainer(c, volumes, names, at)...)
		errs = append(errs, validateRestart(c, true, at)...)
		if sidecar(c) {
			errs = append(errs, validateAsked(c, s, at)...)
		} else {
			errs = append(errs, validateInitContainer(c, at)...)
		}
	}
	for i := range s.EphemeralContainers {
		errs = append(errs, validateEphemeralContainer(s, &s.EphemeralContainers[i], volumes, names, path.Child("ephemeralContainers").Index(i))...)
	}
	return errs
}

func validateContainer(c *corev1.Container, volumes map[string]*corev1.Volume, names sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, ownName(c.Name, names, path.Child("name"))...)
	names.Insert(c.Name)
	switch at := path.Child("image"); {
	case c.Image == "":
		errs = append(errs, field.Required(at, ""))
	case strings.TrimSpace(c.Image) != c.Image:
		errs = append(errs, field.Invalid(at, c.Image, "must not have leading or trailing whitespace"))
	default:
		errs = append(errs, cleanPath(c.Image, at)...)
	}
	for name, list := range map[string][]string{"command": c.Command, "args": c.Args} {
		for i, arg := range list {
			errs = append(errs, noNUL(arg, path.Child(name).Index(i))...)
		}
	}
	errs = append(errs, cleanPath(c.WorkingDir, path.Child("workingDir"))...)
	errs = append(errs, cleanPath(c.TerminationMessagePath, path.Child("terminationMessagePath"))...)
	errs = append(errs, oneOf(c.TerminationMessagePolicy, path.Child("terminationMessagePolicy"), corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)...)
	errs = append(errs, pullPolicy(c.ImagePullPolicy, path.Child("imagePullPolicy"))...)
	errs = append(errs, validatePorts(c.Ports, path.Child("ports"))...)
	errs = append(errs, validateEnv(c.Env, path.Child("env"))...)
	errs = append(errs, validateEnvFrom(c.EnvFrom, path.Child("envFrom"))...)
	errs = append(errs, validateMounts(c, volumes, path.Child("volumeMounts"))...)
	errs = append(errs, validateResources(&c.Resources, path.Child("resources"))...)
	errs = append(errs, validateHugePages(&c.Resources, path.Child("resources"))...)
	return append(errs, validateSecurity(c.SecurityContext, path.Child("securityContext"))...)
}

// ownName checks a name that must be a DNS label and differ from others.
func ownName(name string, others sets.Set[string], path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	errs := named(name, path, validation.IsDNS1123Label)
	if others.Has(name) {
		errs = append(errs, field.Duplicate(path, name))
	}
	return errs
}

// validateInitContainer forbids what makes no sense for a container that must end.
func validateInitContainer(c *corev1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"lifecycle", c.Lifecycle != nil},
		{"livenessProbe", c.LivenessProbe != nil},
		{"readinessProbe", c.ReadinessProbe != nil},
		{"startupProbe", c.StartupProbe != nil},
	} {
		if f.set {
			errs = append(errs, field.Forbidden(path.Child(f.name), "may not be set for init containers without restartPolicy=Always"))
		}
	}
	return errs
}

func port(number int32, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range validation.IsValidPortNum(int(number)) {
		errs = append(errs, field.Invalid(path, number, msg))
	}
	return errs
}
