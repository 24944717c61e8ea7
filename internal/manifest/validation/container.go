package validation

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/internal/manifest/podutil"
)

func validateContainers(s *corev1.PodSpec, volumes map[string]*corev1.Volume, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	apps := path.Child("containers")
	if len(s.Containers) == 0 {
		errs = append(errs, field.Required(apps, ""))
	}
	// Names are unique over both lists; app containers are checked first.
	names := sets.New[string]()
	for i := range s.Containers {
		errs = append(errs, validateContainer(&s.Containers[i], volumes, names, apps.Index(i))...)
		errs = append(errs, validateRestart(&s.Containers[i], false, apps.Index(i))...)
		errs = append(errs, validateProbesAndHooks(&s.Containers[i], s, apps.Index(i))...)
	}
	for i := range s.InitContainers {
		c, fieldPath := &s.InitContainers[i], path.Child("initContainers").Index(i)
		errs = append(errs, validateContainer(c, volumes, names, fieldPath)...)
		errs = append(errs, validateRestart(c, true, fieldPath)...)
		if podutil.IsSidecar(c) {
			errs = append(errs, validateProbesAndHooks(c, s, fieldPath)...)
		} else {
			errs = append(errs, validateInitContainer(c, fieldPath)...)
		}
	}
	for i := range s.EphemeralContainers {
		errs = append(errs, validateEphemeralContainer(s, &s.EphemeralContainers[i], volumes, names, path.Child("ephemeralContainers").Index(i))...)
	}
	return append(errs, validateProcMount(s, path)...)
}

func validateContainer(c *corev1.Container, volumes map[string]*corev1.Volume, names sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, validateUniqueName(c.Name, names, path.Child("name"))...)
	names.Insert(c.Name)
	errs = append(errs, validateImage(c.Image, path.Child("image"))...)
	for name, list := range map[string][]string{"command": c.Command, "args": c.Args} {
		for i, arg := range list {
			errs = append(errs, validateNoNUL(arg, path.Child(name).Index(i))...)
		}
	}
	errs = append(errs, validateNoControl(c.WorkingDir, path.Child("workingDir"))...)
	errs = append(errs, validateNoControl(c.TerminationMessagePath, path.Child("terminationMessagePath"))...)
	errs = append(errs, oneOf(c.TerminationMessagePolicy, path.Child("terminationMessagePolicy"), corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)...)
	errs = append(errs, pullPolicy(c.ImagePullPolicy, path.Child("imagePullPolicy"))...)
	errs = append(errs, validatePorts(c.Ports, path.Child("ports"))...)
	errs = append(errs, validateEnv(c.Env, path.Child("env"))...)
	errs = append(errs, validateEnvFrom(c.EnvFrom, path.Child("envFrom"))...)
	errs = append(errs, validateMounts(c, volumes, path.Child("volumeMounts"))...)
	errs = append(errs, validateResources(&c.Resources, containerPids, path.Child("resources"))...)
	errs = append(errs, validateHugePages(&c.Resources, path.Child("resources"))...)
	return append(errs, validateSecurity(c.SecurityContext, path.Child("securityContext"))...)
}

// validateUniqueName checks a name that must be a DNS label and differ from others.
func validateUniqueName(name string, others sets.Set[string], path *field.Path) field.ErrorList {
	errs := checkRequired(name, path, validation.IsDNS1123Label)
	if others.Has(name) {
		errs = append(errs, field.Duplicate(path, name))
	}
	return errs
}

// validateInitContainer refuses fields that have no meaning for a container that must end.
func validateInitContainer(c *corev1.Container, path *field.Path) field.ErrorList {
	return forbidFields(path, "may not be set for init containers without restartPolicy=Always",
		setField{"lifecycle", c.Lifecycle != nil},
		setField{"livenessProbe", c.LivenessProbe != nil},
		setField{"readinessProbe", c.ReadinessProbe != nil},
		setField{"startupProbe", c.StartupProbe != nil})
}

// validateImage checks the reference of an image.
func validateImage(reference string, path *field.Path) field.ErrorList {
	switch {
	case reference == "":
		return field.ErrorList{field.Required(path, "")}
	case strings.TrimSpace(reference) != reference:
		return field.ErrorList{field.Invalid(path, reference, "must not have leading or trailing whitespace")}
	}
	return validateNoControl(reference, path)
}

func validatePort(number int32, path *field.Path) field.ErrorList {
	return checkRule(int(number), path, validation.IsValidPortNum)
}

// The API's limits of a container's restart rules.
const (
	maxRestartRules = 20
	maxRestartCodes = 255
)

// validateRestart checks a container's own policy and rules. The rules of an init container without a policy
// are not checked.
func validateRestart(c *corev1.Container, init bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	fieldPath, rules := path.Child("restartPolicy"), path.Child("restartPolicyRules")
	switch {
	case c.RestartPolicy == nil && len(c.RestartPolicyRules) > 0:
		errs = append(errs, field.Required(fieldPath, "must specify restartPolicy when restart rules are used"))
		if init {
			return errs
		}
	case c.RestartPolicy == nil:
		return nil
	default:
		errs = append(errs, enumerated(*c.RestartPolicy, fieldPath, corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure)...)
	}
	if n := len(c.RestartPolicyRules); n > maxRestartRules {
		errs = append(errs, field.TooMany(rules, n, maxRestartRules))
	}
	for i, r := range c.RestartPolicyRules {
		fieldPath := rules.Index(i)
		errs = append(errs, enumerated(r.Action, fieldPath.Child("action"), corev1.ContainerRestartRuleActionRestart, corev1.ContainerRestartRuleActionRestartAllContainers)...)
		if r.ExitCodes == nil {
			errs = append(errs, field.Required(fieldPath.Child("exitCodes"), "must be specified"))
			continue
		}
		fieldPath = fieldPath.Child("exitCodes")
		errs = append(errs, enumerated(r.ExitCodes.Operator, fieldPath.Child("operator"), corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn)...)
		if n := len(r.ExitCodes.Values); n > maxRestartCodes {
			errs = append(errs, field.TooMany(fieldPath.Child("values"), n, maxRestartCodes))
		}
	}
	return errs
}

// enumerated checks an enumeration in which the empty value means unset.
func enumerated[T ~string](value T, path *field.Path, supported ...T) field.ErrorList {
	if !slices.Contains(supported, value) {
		return field.ErrorList{field.NotSupported(path, value, supported)}
	}
	return nil
}

// validateEphemeralContainer is validateEphemeralContainers of pkg/apis/core/validation.
func validateEphemeralContainer(s *corev1.PodSpec, c *corev1.EphemeralContainer, volumes map[string]*corev1.Volume, names sets.Set[string], path *field.Path) field.ErrorList {
	errs := validateContainer((*corev1.Container)(&c.EphemeralContainerCommon), volumes, names, path)
	if t := c.TargetContainerName; t != "" && !slices.ContainsFunc(s.Containers, func(o corev1.Container) bool { return o.Name == t }) {
		errs = append(errs, field.NotFound(path.Child("targetContainerName"), t))
	}
	return append(errs, ValidateEphemeralFields(c, path)...)
}

// ValidateEphemeralFields refuses the fields that an ephemeral container must not have.
func ValidateEphemeralFields(c *corev1.EphemeralContainer, path *field.Path) field.ErrorList {
	const reason = "cannot be set for an Ephemeral Container"
	errs := forbidFields(path, reason,
		setField{"ports", len(c.Ports) > 0},
		setField{"resources", len(c.Resources.Limits)+len(c.Resources.Requests)+len(c.Resources.Claims) > 0},
		setField{"resizePolicy", len(c.ResizePolicy) > 0},
		setField{"restartPolicy", c.RestartPolicy != nil},
		setField{"restartPolicyRules", len(c.RestartPolicyRules) > 0},
		setField{"livenessProbe", c.LivenessProbe != nil},
		setField{"readinessProbe", c.ReadinessProbe != nil},
		setField{"startupProbe", c.StartupProbe != nil},
		setField{"lifecycle", c.Lifecycle != nil})
	for i, m := range c.VolumeMounts {
		errs = append(errs, forbidFields(path.Child("volumeMounts").Index(i), reason, setField{"subPath", m.SubPath != ""}, setField{"subPathExpr", m.SubPathExpr != ""})...)
	}
	return errs
}
