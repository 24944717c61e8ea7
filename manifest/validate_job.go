package manifest

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/workload"
)

// indexed says whether each pod of a Job has a number.
func indexed(s *batchv1.JobSpec) bool {
	return s.CompletionMode != nil && *s.CompletionMode == batchv1.IndexedCompletion
}

func validateJob(s *batchv1.JobSpec, spec *field.Path) field.ErrorList {
	errs := few(s.Parallelism, spec.Child("parallelism"))
	errs = append(errs, counted(s.Completions, spec.Child("completions"))...)
	errs = append(errs, counted(s.BackoffLimit, spec.Child("backoffLimit"))...)
	errs = append(errs, counted(s.TTLSecondsAfterFinished, spec.Child("ttlSecondsAfterFinished"))...)
	errs = append(errs, counted(s.ActiveDeadlineSeconds, spec.Child("activeDeadlineSeconds"))...)
	errs = append(errs, oneOf(*s.CompletionMode, spec.Child("completionMode"), batchv1.NonIndexedCompletion, batchv1.IndexedCompletion)...)
	errs = append(errs, oneOf(*s.PodReplacementPolicy, spec.Child("podReplacementPolicy"), batchv1.Failed, batchv1.TerminatingOrFailed)...)
	if indexed(s) {
		if s.Completions == nil {
			errs = append(errs, field.Required(spec.Child("completions"), "when completion mode is Indexed"))
		} else if *s.Completions > maxPods { // ours: each index is remembered
			errs = append(errs, few(s.Completions, spec.Child("completions"))...)
		}
	}
	errs = append(errs, validatePolicies(s, spec)...)
	path := spec.Child("template", "spec", "restartPolicy")
	policies := []corev1.RestartPolicy{corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}
	if p := s.Template.Spec.RestartPolicy; p == corev1.RestartPolicyAlways {
		errs = append(errs, field.Required(path, "valid values: \"OnFailure\", \"Never\""))
	} else {
		errs = append(errs, oneOf(p, path, policies...)...)
	}
	return errs
}

// maxCronName leaves room for what Jobs have after the CronJob's name (Kubernetes'
// rule: 11 of 63 characters).
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
	errs = append(errs, counted(s.StartingDeadlineSeconds, spec.Child("startingDeadlineSeconds"))...)
	errs = append(errs, oneOf(s.ConcurrencyPolicy, spec.Child("concurrencyPolicy"), batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)...)
	errs = append(errs, counted(s.SuccessfulJobsHistoryLimit, spec.Child("successfulJobsHistoryLimit"))...)
	errs = append(errs, counted(s.FailedJobsHistoryLimit, spec.Child("failedJobsHistoryLimit"))...)
	job := spec.Child("jobTemplate")
	errs = append(errs, apivalidation.ValidateAnnotations(s.JobTemplate.Annotations, job.Child("metadata", "annotations"))...)
	return append(errs, validateJob(&s.JobTemplate.Spec, job.Child("spec"))...)
}
