package validation

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/workload"
)

func validateJob(s *batchv1.JobSpec, spec *field.Path) field.ErrorList {
	errs := validatePodCount(s.Parallelism, spec.Child("parallelism"))
	errs = append(errs, validateCount(s.Completions, spec.Child("completions"))...)
	errs = append(errs, validateCount(s.BackoffLimit, spec.Child("backoffLimit"))...)
	errs = append(errs, validateCount(s.TTLSecondsAfterFinished, spec.Child("ttlSecondsAfterFinished"))...)
	errs = append(errs, validateCount(s.ActiveDeadlineSeconds, spec.Child("activeDeadlineSeconds"))...)
	errs = append(errs, oneOf(*s.CompletionMode, spec.Child("completionMode"), batchv1.NonIndexedCompletion, batchv1.IndexedCompletion)...)
	errs = append(errs, oneOf(*s.PodReplacementPolicy, spec.Child("podReplacementPolicy"), batchv1.Failed, batchv1.TerminatingOrFailed)...)
	if podutil.IsIndexedJob(s) {
		if s.Completions == nil {
			errs = append(errs, field.Required(spec.Child("completions"), "when completion mode is Indexed"))
		} else if *s.Completions > maxPods { // podrun's own rule: each index is stored
			errs = append(errs, validatePodCount(s.Completions, spec.Child("completions"))...)
		}
	}
	errs = append(errs, validateJobPolicies(s, spec)...)
	path := spec.Child("template", "spec", "restartPolicy")
	policies := []corev1.RestartPolicy{corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}
	if p := s.Template.Spec.RestartPolicy; p == corev1.RestartPolicyAlways {
		errs = append(errs, field.Required(path, "valid values: \"OnFailure\", \"Never\""))
	} else {
		errs = append(errs, oneOf(p, path, policies...)...)
	}
	return errs
}

// maxCronName leaves room for the suffix of a Job's name after the CronJob's (Kubernetes' rule: 11 of 63
// characters).
const maxCronName = 52

func validateCronJob(o *batchv1.CronJob, spec *field.Path) field.ErrorList {
	s := &o.Spec
	var errs field.ErrorList
	if len(o.Name) > maxCronName {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), o.Name, "must be no more than 52 characters"))
	}
	if s.Schedule == "" {
		errs = append(errs, field.Required(spec.Child("schedule"), ""))
	} else if err := workload.CheckSchedule(s.Schedule); err != nil {
		errs = append(errs, field.Invalid(spec.Child("schedule"), s.Schedule, err.Error()))
	}
	if z := s.TimeZone; z != nil {
		switch {
		case *z == "":
			errs = append(errs, field.Invalid(spec.Child("timeZone"), *z, "timeZone must be nil or non-empty string"))
		case strings.EqualFold(*z, "Local"):
			errs = append(errs, field.Invalid(spec.Child("timeZone"), *z, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"))
		case strings.HasPrefix(*z, "/") || strings.Contains(*z, ".."):
			errs = append(errs, field.Invalid(spec.Child("timeZone"), *z, "unknown time zone "+*z))
		}
	}
	errs = append(errs, validateCount(s.StartingDeadlineSeconds, spec.Child("startingDeadlineSeconds"))...)
	errs = append(errs, oneOf(s.ConcurrencyPolicy, spec.Child("concurrencyPolicy"), batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)...)
	errs = append(errs, validateCount(s.SuccessfulJobsHistoryLimit, spec.Child("successfulJobsHistoryLimit"))...)
	errs = append(errs, validateCount(s.FailedJobsHistoryLimit, spec.Child("failedJobsHistoryLimit"))...)
	job := spec.Child("jobTemplate")
	errs = append(errs, apivalidation.ValidateAnnotations(s.JobTemplate.Annotations, job.Child("metadata", "annotations"))...)
	return append(errs, validateJob(&s.JobTemplate.Spec, job.Child("spec"))...)
}

// Bounds of the API server (pkg/apis/batch/validation).
const (
	maxRules     = 20
	maxExitCodes = 255
	maxIndexText = 64 << 10
)

// validateJobPolicies checks a Job's policies for failed and succeeded pods.
func validateJobPolicies(s *batchv1.JobSpec, spec *field.Path) field.ErrorList {
	errs := validateCount(s.BackoffLimitPerIndex, spec.Child("backoffLimitPerIndex"))
	errs = append(errs, validateCount(s.MaxFailedIndexes, spec.Child("maxFailedIndexes"))...)
	if s.MaxFailedIndexes != nil && s.BackoffLimitPerIndex == nil {
		errs = append(errs, field.Required(spec.Child("backoffLimitPerIndex"), "when maxFailedIndexes is specified"))
	}
	if podutil.IsIndexedJob(s) {
		if n := s.MaxFailedIndexes; n != nil && s.Completions != nil && *n > *s.Completions {
			errs = append(errs, field.Invalid(spec.Child("maxFailedIndexes"), *n, "must be less than or equal to completions"))
		}
	} else {
		const lacks = "requires indexed completion mode"
		if s.BackoffLimitPerIndex != nil {
			errs = append(errs, field.Invalid(spec.Child("backoffLimitPerIndex"), *s.BackoffLimitPerIndex, lacks))
		}
		if s.MaxFailedIndexes != nil {
			errs = append(errs, field.Invalid(spec.Child("maxFailedIndexes"), *s.MaxFailedIndexes, lacks))
		}
		if s.SuccessPolicy != nil {
			errs = append(errs, field.Invalid(spec.Child("successPolicy"), field.OmitValueType{}, lacks))
		}
	}
	if s.PodFailurePolicy != nil {
		errs = append(errs, validateFailurePolicy(s, spec)...)
	}
	if s.SuccessPolicy != nil && podutil.IsIndexedJob(s) && s.Completions != nil {
		errs = append(errs, validateSuccessPolicy(s, spec.Child("successPolicy", "rules"))...)
	}
	return errs
}

func validateFailurePolicy(s *batchv1.JobSpec, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	rules := spec.Child("podFailurePolicy", "rules")
	if n := len(s.PodFailurePolicy.Rules); n > maxRules {
		errs = append(errs, field.TooMany(rules, n, maxRules))
	}
	for i := range s.PodFailurePolicy.Rules {
		errs = append(errs, validateFailureRule(s, &s.PodFailurePolicy.Rules[i], rules.Index(i))...)
	}
	if p := *s.PodReplacementPolicy; p != batchv1.Failed {
		errs = append(errs, field.NotSupported(spec.Child("podReplacementPolicy"), p, []batchv1.PodReplacementPolicy{batchv1.Failed}))
	}
	if p := s.Template.Spec.RestartPolicy; p == corev1.RestartPolicyOnFailure {
		errs = append(errs, field.Invalid(spec.Child("template", "spec", "restartPolicy"), p, "only \"Never\" is supported when podFailurePolicy is specified"))
	}
	return errs
}

func validateFailureRule(s *batchv1.JobSpec, r *batchv1.PodFailurePolicyRule, fieldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	action := fieldPath.Child("action")
	actions := []batchv1.PodFailurePolicyAction{batchv1.PodFailurePolicyActionCount, batchv1.PodFailurePolicyActionFailIndex, batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionIgnore}
	switch {
	case r.Action == "":
		errs = append(errs, field.Required(action, fmt.Sprintf("valid values: %q", actions)))
	case r.Action == batchv1.PodFailurePolicyActionFailIndex && s.BackoffLimitPerIndex == nil:
		errs = append(errs, field.Invalid(action, r.Action, "requires the backoffLimitPerIndex to be set"))
	default:
		errs = append(errs, oneOf(r.Action, action, actions...)...)
	}
	if r.OnExitCodes != nil {
		errs = append(errs, validateExitCodes(s, r.OnExitCodes, fieldPath.Child("onExitCodes"))...)
	}
	if n := len(r.OnPodConditions); n > maxRules {
		errs = append(errs, field.TooMany(fieldPath.Child("onPodConditions"), n, maxRules))
	}
	for i, c := range r.OnPodConditions {
		itemPath := fieldPath.Child("onPodConditions").Index(i)
		errs = append(errs, checkRule(string(c.Type), itemPath.Child("type"), validation.IsQualifiedName)...)
		errs = append(errs, oneOf(c.Status, itemPath.Child("status"), corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown)...)
	}
	switch codes, conditions := r.OnExitCodes != nil, len(r.OnPodConditions) > 0; {
	case codes && conditions:
		errs = append(errs, field.Invalid(fieldPath, field.OmitValueType{}, "specifying both OnExitCodes and OnPodConditions is not supported"))
	case !codes && !conditions:
		errs = append(errs, field.Invalid(fieldPath, field.OmitValueType{}, "specifying one of OnExitCodes and OnPodConditions is required"))
	}
	return errs
}

func validateExitCodes(s *batchv1.JobSpec, c *batchv1.PodFailurePolicyOnExitCodesRequirement, fieldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	operators := []batchv1.PodFailurePolicyOnExitCodesOperator{batchv1.PodFailurePolicyOnExitCodesOpIn, batchv1.PodFailurePolicyOnExitCodesOpNotIn}
	if c.Operator == "" {
		errs = append(errs, field.Required(fieldPath.Child("operator"), fmt.Sprintf("valid values: %q", operators)))
	} else {
		errs = append(errs, oneOf(c.Operator, fieldPath.Child("operator"), operators...)...)
	}
	known := func(list []corev1.Container) bool {
		return slices.ContainsFunc(list, func(k corev1.Container) bool { return k.Name == *c.ContainerName })
	}
	if c.ContainerName != nil && !known(s.Template.Spec.Containers) && !known(s.Template.Spec.InitContainers) {
		errs = append(errs, field.Invalid(fieldPath.Child("containerName"), *c.ContainerName, "must be one of the container or initContainer names in the pod template"))
	}
	values := fieldPath.Child("values")
	switch n := len(c.Values); {
	case n == 0:
		errs = append(errs, field.Invalid(values, c.Values, "at least one value is required"))
	case n > maxExitCodes:
		errs = append(errs, field.TooMany(values, n, maxExitCodes))
	}
	for i, n := range c.Values {
		if n == 0 && c.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn {
			errs = append(errs, field.Invalid(values.Index(i), n, "must not be 0 for the In operator"))
		}
		if slices.Contains(c.Values[:i], n) {
			errs = append(errs, field.Duplicate(values.Index(i), n))
		}
	}
	if !slices.IsSorted(c.Values) {
		errs = append(errs, field.Invalid(values, c.Values, "must be ordered"))
	}
	return errs
}

func validateSuccessPolicy(s *batchv1.JobSpec, rules *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch n := len(s.SuccessPolicy.Rules); {
	case n == 0:
		errs = append(errs, field.Required(rules, "at least one rules must be specified when the successPolicy is specified"))
	case n > maxRules:
		errs = append(errs, field.TooMany(rules, n, maxRules))
	}
	for i, r := range s.SuccessPolicy.Rules {
		fieldPath := rules.Index(i)
		if r.SucceededCount == nil && r.SucceededIndexes == nil {
			errs = append(errs, field.Required(fieldPath, "at least one of succeededCount or succeededIndexes must be specified"))
		}
		total := int(*s.Completions)
		if n := r.SucceededCount; n != nil && int(*n) > total {
			errs = append(errs, field.Invalid(fieldPath.Child("succeededCount"), *n, fmt.Sprintf("must be less than or equal to %d (the number of specified completions)", total)))
		}
		if text := r.SucceededIndexes; text != nil {
			list, err := podutil.ParseIndexes(*text, total)
			switch {
			case len(*text) > maxIndexText:
				errs = append(errs, field.TooLong(fieldPath.Child("succeededIndexes"), "", maxIndexText))
			case err != nil:
				errs = append(errs, field.Invalid(fieldPath.Child("succeededIndexes"), *text, "error parsing succeededIndexes: "+err.Error()))
			}
			if n := r.SucceededCount; n != nil && int(*n) > len(list) {
				errs = append(errs, field.Invalid(fieldPath.Child("succeededCount"), *n, fmt.Sprintf("must be less than or equal to %d (the number of indexes in the specified succeededIndexes field)", len(list))))
			}
		}
		errs = append(errs, validateCount(r.SucceededCount, fieldPath.Child("succeededCount"))...)
	}
	return errs
}
