package validation

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/manifest/resources"
)

// ValidatePod checks a Pod with its defaults as the API server checks one that is created (ValidatePodCreate
// in pkg/apis/core/validation of Kubernetes), in its words, for the fields that podrun supports. Some rules
// are podrun's own: they refuse what cannot run, or values that would overflow.
func ValidatePod(p *corev1.Pod) field.ErrorList {
	meta, spec := field.NewPath("metadata"), field.NewPath("spec")
	errs := apivalidation.ValidateObjectMeta(&p.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, meta)
	errs = append(errs, validateAnnotations(p.Annotations, meta.Child("annotations"))...)
	if order, ok := p.Labels[podutil.LaunchPriorityKey]; ok {
		errs = append(errs, oneOf(order, meta.Child("labels").Key(podutil.LaunchPriorityKey), podutil.LaunchPriorityOrdered)...)
	}
	volumes, bad := validateVolumes(p.Name, p.Spec.Volumes, spec.Child("volumes"))
	errs = append(errs, bad...)
	errs = append(errs, validateContainers(&p.Spec, volumes, spec)...)
	errs = append(errs, validateFileVolumes(&p.Spec, spec)...)
	errs = append(errs, validateHugeVolumes(&p.Spec, spec.Child("volumes"))...)
	errs = append(errs, validatePodResources(p, spec.Child("resources"))...)
	errs = append(errs, validateResizePolicies(&p.Spec, spec)...)
	errs = append(errs, validateNodeName(p, spec)...)
	if name := p.Spec.RuntimeClassName; name != nil { // ValidateRuntimeClassName
		errs = append(errs, checkRule(*name, spec.Child("runtimeClassName"), validation.IsDNS1123Subdomain)...)
	}
	errs = append(errs, validatePodSecurity(p.Spec.SecurityContext, p.Spec.HostIPC, spec.Child("securityContext"))...)
	errs = append(errs, validateAppArmorAnnotations(p)...)
	errs = append(errs, validateOptions(p, meta.Child("annotations"))...)
	errs = append(errs, validateHostUsers(&p.Spec, spec)...)
	errs = append(errs, validateHostPID(&p.Spec, spec)...)
	errs = append(errs, ValidateNetwork(p, meta, spec)...)
	errs = append(errs, validateHostname(&p.Spec, spec)...)
	return append(errs, validatePodFields(&p.Spec, spec)...)
}

func validateAnnotations(annotations map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for key, values := range map[string][]string{
		podutil.AnnotationPodLimits:  {string(resources.RuleEffective), string(resources.RuleKubelet)},
		podutil.AnnotationHookReason: {"true", "false"},
		podutil.AnnotationMemoryQoS:  {"true", "false"},
		podutil.AnnotationKeepFiles:  {"true", "false"},
		podutil.AnnotationRunAtBoot:  {"true", "false"},
		podutil.LaunchPriorityKey:    {podutil.LaunchPriorityOrdered},
	} {
		if value, ok := annotations[key]; ok {
			errs = append(errs, oneOf(value, path.Key(key), values...)...)
		}
	}
	if value, ok := annotations[podutil.AnnotationSync]; ok {
		if _, err := podutil.ParseSync(value); err != nil {
			errs = append(errs, field.Invalid(path.Key(podutil.AnnotationSync), value, err.Error()))
		}
	}
	if value, ok := annotations[podutil.AnnotationStartAfter]; ok {
		if _, err := podutil.ParseStartAfter(value); err != nil {
			errs = append(errs, field.Invalid(path.Key(podutil.AnnotationStartAfter), value, err.Error()))
		}
	}
	if value, ok := annotations[podutil.AnnotationLabels]; ok && json.Unmarshal([]byte(value), &map[string]string{}) != nil {
		errs = append(errs, field.Invalid(path.Key(podutil.AnnotationLabels), value, "must be a JSON object of texts"))
	}
	errs = append(errs, validateDeviceAnnotations(annotations, path)...)
	return append(errs, validateLogs(annotations, path)...)
}

func validatePodFields(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	errs := oneOf(s.RestartPolicy, path.Child("restartPolicy"), corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	errs = append(errs, validateDNS(s, path)...)
	if s.OS != nil {
		errs = append(errs, oneOf(s.OS.Name, path.Child("os", "name"), corev1.Linux, corev1.Windows)...)
	}
	if g := s.TerminationGracePeriodSeconds; g != nil {
		errs = append(errs, apivalidation.ValidateNonnegativeField(*g, path.Child("terminationGracePeriodSeconds"))...)
		if *g > math.MaxInt32 { // podrun's own rule: a later sum of durations must not overflow
			errs = append(errs, field.Invalid(path.Child("terminationGracePeriodSeconds"), *g, validation.InclusiveRangeError(0, math.MaxInt32)))
		}
	}
	if d := s.ActiveDeadlineSeconds; d != nil && (*d < 1 || *d > math.MaxInt32) {
		errs = append(errs, field.Invalid(path.Child("activeDeadlineSeconds"), *d, validation.InclusiveRangeError(1, math.MaxInt32)))
	}
	for i, gate := range s.ReadinessGates {
		errs = append(errs, checkRule(string(gate.ConditionType), path.Child("readinessGates").Index(i).Child("conditionType"), validation.IsQualifiedName)...)
	}
	for i, secret := range s.ImagePullSecrets {
		errs = append(errs, checkRequired(secret.Name, path.Child("imagePullSecrets").Index(i).Child("name"), isObjectName)...)
	}
	errs = append(errs, checkOptional(s.NodeName, path.Child("nodeName"), validation.IsDNS1123Subdomain)...)
	return append(errs, checkOptional(s.ServiceAccountName, path.Child("serviceAccountName"), validation.IsDNS1123Subdomain)...)
}

// oneOf checks an enumeration. A message lists the values in the given order. The empty value is a missing
// one.
func oneOf[T ~string](value T, path *field.Path, supported ...T) field.ErrorList {
	switch {
	case value == "":
		return field.ErrorList{field.Required(path, "")}
	case !slices.Contains(supported, value):
		return field.ErrorList{field.NotSupported(path, value, supported)}
	}
	return nil
}

// pullPolicy checks the pull policy of an image. A loaded Pod keeps an unset one.
func pullPolicy(p corev1.PullPolicy, path *field.Path) field.ErrorList {
	if p == "" {
		return nil
	}
	return oneOf(p, path, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
}

// optionalOneOf is oneOf for a field that may be unset.
func optionalOneOf[T ~string](value *T, path *field.Path, supported ...T) field.ErrorList {
	if value == nil {
		return nil
	}
	return oneOf(*value, path, supported...)
}

// setField is a field, and whether it is set.
type setField struct {
	name string
	set  bool
}

// forbidFields refuses the fields that are set.
func forbidFields(path *field.Path, reason string, fields ...setField) field.ErrorList {
	var errs field.ErrorList
	for _, f := range fields {
		if f.set {
			errs = append(errs, field.Forbidden(path.Child(f.name), reason))
		}
	}
	return errs
}

// checkRule applies one of apimachinery's rules.
func checkRule[T any](value T, path *field.Path, rule func(T) []string) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range rule(value) {
		errs = append(errs, field.Invalid(path, value, msg))
	}
	return errs
}

// checkOptional is checkRule for a text that may be unset.
func checkOptional(value string, path *field.Path, rule func(string) []string) field.ErrorList {
	if value == "" {
		return nil
	}
	return checkRule(value, path, rule)
}

// checkPointer is checkRule for a field that may be nil.
func checkPointer[T any](value *T, path *field.Path, rule func(T) []string) field.ErrorList {
	if value == nil {
		return nil
	}
	return checkRule(*value, path, rule)
}

// checkRequired is checkRule for a name that must be set.
func checkRequired(name string, path *field.Path, rule func(string) []string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return checkRule(name, path, rule)
}

// validateNoNUL refuses NUL bytes, which no system call accepts. It is podrun's own rule: the API server
// stores such text, and the container fails to start.
func validateNoNUL(value string, path *field.Path) field.ErrorList {
	if strings.IndexByte(value, 0) >= 0 {
		return field.ErrorList{field.Invalid(path, value, "must not contain a NUL byte")}
	}
	return nil
}

// validateNoControl refuses control characters in paths, which would forge lines in tables of mounts. It is
// podrun's own rule.
func validateNoControl(value string, path *field.Path) field.ErrorList {
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return field.ErrorList{field.Invalid(path, value, "must not contain control characters")}
	}
	return nil
}

func validateLogs(annotations map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if text, ok := annotations[podutil.AnnotationLogMaxSize]; ok {
		if _, err := podutil.ParseLogMaxSize(text); err != nil {
			errs = append(errs, field.Invalid(path.Key(podutil.AnnotationLogMaxSize), text, err.Error()))
		}
	}
	if text, ok := annotations[podutil.AnnotationLogMaxFiles]; ok {
		if _, err := podutil.ParseLogMaxFiles(text); err != nil {
			errs = append(errs, field.Invalid(path.Key(podutil.AnnotationLogMaxFiles), text, err.Error()))
		}
	}
	return errs
}
