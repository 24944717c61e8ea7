package manifest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/workload"
)

// Bounds of the API server (pkg/apis/batch/validation).
const (
	maxRules     = 20
	maxExitCodes = 255
	maxIndexText = 64 << 10
)

// specPolicies is what a Job's rules mean to workload.Decide. They have been validated.
func specPolicies(j *workload.JobSpec, s *batchv1.JobSpec) {
	j.BackoffPerIndex, j.MaxFailedIndexes = -1, -1
	if s.BackoffLimitPerIndex != nil {
		j.BackoffPerIndex = int(*s.BackoffLimitPerIndex)
	}
	if s.MaxFailedIndexes != nil {
		j.MaxFailedIndexes = int(*s.MaxFailedIndexes)
	}
	if p := s.PodFailurePolicy; p != nil {
		for _, r := range p.Rules {
			j.FailureRules = append(j.FailureRules, specFailureRule(&r))
		}
	}
	if p := s.SuccessPolicy; p != nil {
		for _, r := range p.Rules {
			rule := workload.SuccessRule{Count: -1}
			if r.SucceededCount != nil {
				rule.Count = int(*r.SucceededCount)
			}
			if r.SucceededIndexes != nil {
				rule.Indexes, _ = indexList(*r.SucceededIndexes, j.Completions)
				rule.Indexes = append([]int{}, rule.Indexes...) // none is not any
			}
			j.SuccessRules = append(j.SuccessRules, rule)
		}
	}
}

func specFailureRule(r *batchv1.PodFailurePolicyRule) workload.FailureRule {
	out := workload.FailureRule{Action: workload.FailureAction(r.Action)}
	if c := r.OnExitCodes; c != nil {
		out.NotIn = c.Operator == batchv1.PodFailurePolicyOnExitCodesOpNotIn
		if c.ContainerName != nil {
			out.Container = *c.ContainerName
		}
		for _, n := range c.Values {
			out.Codes = append(out.Codes, int(n))
		}
	}
	for _, c := range r.OnPodConditions {
		out.Conditions = append(out.Conditions, workload.FailureCondition{Type: string(c.Type), Status: string(c.Status)})
	}
	return out
}

// indexList reads indexes as Kubernetes writes them, 0,2-4, each less than a number
// (validateIndexesFormat in pkg/apis/batch/validation).
func indexList(text string, completions int) (list []int, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		limits := strings.Split(part, "-")
		if len(limits) > 2 {
			return nil, fmt.Errorf("the fragment %q violates the requirement that an index interval can have at most two parts separated by '-'", part)
		}
		var ends []int
		for _, limit := range limits {
			n, err := strconv.Atoi(limit)
			if err != nil {
				return nil, fmt.Errorf("cannot convert string to integer for index: %q", limit)
			}
			if n >= completions {
				return nil, fmt.Errorf("too large index: %q", limit)
			}
			ends = append(ends, n)
		}
		first, last := ends[0], ends[len(ends)-1]
		if len(ends) == 2 && first >= last {
			return nil, fmt.Errorf("non-increasing order, previous: %d, current: %d", first, last)
		}
		if n := len(list); n > 0 && list[n-1] >= first {
			return nil, fmt.Errorf("non-increasing order, previous: %d, current: %d", list[n-1], first)
		}
		for i := first; i <= last; i++ {
			list = append(list, i)
		}
	}
	return list, nil
}

// validatePolicies checks what a Job makes of its pods' ends.
func validatePolicies(s *batchv1.JobSpec, spec *field.Path) field.ErrorList {
	errs := counted(s.BackoffLimitPerIndex, spec.Child("backoffLimitPerIndex"))
	errs = append(errs, counted(s.MaxFailedIndexes, spec.Child("maxFailedIndexes"))...)
	if s.MaxFailedIndexes != nil && s.BackoffLimitPerIndex == nil {
		errs = append(errs, field.Required(spec.Child("backoffLimitPerIndex"), "when maxFailedIndexes is specified"))
	}
	if indexed(s) {
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
	if s.SuccessPolicy != nil && indexed(s) && s.Completions != nil {
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

func validateFailureRule(s *batchv1.JobSpec, r *batchv1.PodFailurePolicyRule, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	action := at.Child("action")
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
		errs = append(errs, validateExitCodes(s, r.OnExitCodes, at.Child("onExitCodes"))...)
	}
	if n := len(r.OnPodConditions); n > maxRules {
		errs = append(errs, field.TooMany(at.Child("onPodConditions"), n, maxRules))
	}
	for i, c := range r.OnPodConditions {
		one := at.Child("onPodConditions").Index(i)
		errs = append(errs, named(string(c.Type), one.Child("type"), validation.IsQualifiedName)...)
		errs = append(errs, oneOf(c.Status, one.Child("status"), corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown)...)
	}
	switch codes, conditions := r.OnExitCodes != nil, len(r.OnPodConditions) > 0; {
	case codes && conditions:
		errs = append(errs, field.Invalid(at, field.OmitValueType{}, "specifying both OnExitCodes and OnPodConditions is not supported"))
	case !codes && !conditions:
		errs = append(errs, field.Invalid(at, field.OmitValueType{}, "specifying one of OnExitCodes and OnPodConditions is required"))
	}
	return errs
}

func validateExitCodes(s *batchv1.JobSpec, c *batchv1.PodFailurePolicyOnExitCodesRequirement, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	operators := []batchv1.PodFailurePolicyOnExitCodesOperator{batchv1.PodFailurePolicyOnExitCodesOpIn, batchv1.PodFailurePolicyOnExitCodesOpNotIn}
	if c.Operator == "" {
		errs = append(errs, field.Required(at.Child("operator"), fmt.Sprintf("valid values: %q", operators)))
	} else {
		errs = append(errs, oneOf(c.Operator, at.Child("operator"), operators...)...)
	}
	known := func(list []corev1.Container) bool {
		return slices.ContainsFunc(list, func(k corev1.Container) bool { return k.Name == *c.ContainerName })
	}
	if c.ContainerName != nil && !known(s.Template.Spec.Containers) && !known(s.Template.Spec.InitContainers) {
		errs = append(errs, field.Invalid(at.Child("containerName"), *c.ContainerName, "must be one of the container or initContainer names in the pod template"))
	}
	values := at.Child("values")
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
		at := rules.Index(i)
		if r.SucceededCount == nil && r.SucceededIndexes == nil {
			errs = append(errs, field.Required(at, "at least one of succeededCount or succeededIndexes must be specified"))
		}
		total := int(*s.Completions)
		if n := r.SucceededCount; n != nil && int(*n) > total {
			errs = append(errs, field.Invalid(at.Child("succeededCount"), *n, fmt.Sprintf("must be less than or equal to %d (the number of specified completions)", total)))
		}
		if text := r.SucceededIndexes; text != nil {
			list, err := indexList(*text, total)
			switch {
			case len(*text) > maxIndexText:
				errs = append(errs, field.TooLong(at.Child("succeededIndexes"), "", maxIndexText))
			case err != nil:
				errs = append(errs, field.Invalid(at.Child("succeededIndexes"), *text, "error parsing succeededIndexes: "+err.Error()))
			}
			if n := r.SucceededCount; n != nil && int(*n) > len(list) {
				errs = append(errs, field.Invalid(at.Child("succeededCount"), *n, fmt.Sprintf("must be less than or equal to %d (the number of indexes in the specified succeededIndexes field)", len(list))))
			}
		}
		errs = append(errs, counted(r.SucceededCount, at.Child("succeededCount"))...)
	}
	return errs
}

var jobPolicyRows = []Field{
	{Path: "spec.backoffLimitPerIndex", Support: Done},
	{Path: "spec.maxFailedIndexes", Support: Done},
	{Path: "spec.podFailurePolicy", Support: Done},
	{Path: "spec.podFailurePolicy.rules", Support: Done},
	{Path: "spec.podFailurePolicy.rules[].action", Support: Done, Note: "FailJob, FailIndex, Ignore or Count"},
	{Path: "spec.podFailurePolicy.rules[].onExitCodes", Support: Done},
	{Path: "spec.podFailurePolicy.rules[].onExitCodes.containerName", Support: Done},
	{Path: "spec.podFailurePolicy.rules[].onExitCodes.operator", Support: Done, Note: "In or NotIn"},
	{Path: "spec.podFailurePolicy.rules[].onExitCodes.values", Support: Done},
	{Path: "spec.podFailurePolicy.rules[].onPodConditions", Support: Done},
	{Path: "spec.podFailurePolicy.rules[].onPodConditions[].type", Support: Done, Note: "DisruptionTarget: the pod was evicted, or ended with the machine"},
	{Path: "spec.podFailurePolicy.rules[].onPodConditions[].status", Support: Done, Note: "default: True"},
	{Path: "spec.successPolicy", Support: Done},
	{Path: "spec.successPolicy.rules", Support: Done},
	{Path: "spec.successPolicy.rules[].succeededIndexes", Support: Done},
	{Path: "spec.successPolicy.rules[].succeededCount", Support: Done},
}
