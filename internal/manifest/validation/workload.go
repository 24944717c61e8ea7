package validation

import (
	"fmt"
	"math"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/internal/manifest/apiutil"
	"github.com/podrun/podrun/internal/manifest/podutil"
)

// maxPods bounds the number of pods of a workload. It is podrun's own rule: there is one machine.
const maxPods = 10_000

// ValidateWorkload checks a workload with its defaults as the API server checks one that is created
// (pkg/apis/{apps,batch}/validation of Kubernetes), without its template.
func ValidateWorkload(object metav1.Object) field.ErrorList {
	spec := field.NewPath("spec")
	rule := apivalidation.NameIsDNSSubdomain
	var errs field.ErrorList
	switch o := object.(type) {
	case *appsv1.Deployment:
		errs = validateDeployment(&o.Spec, spec)
	case *appsv1.ReplicaSet:
		errs = validateCount(o.Spec.Replicas, spec.Child("replicas"))
		errs = append(errs, validateCount(&o.Spec.MinReadySeconds, spec.Child("minReadySeconds"))...)
		errs = append(errs, validateSelector(o.Spec.Selector, &o.Spec.Template, spec)...)
	case *corev1.ReplicationController:
		errs = validateReplicationController(&o.Spec, spec)
	case *appsv1.StatefulSet:
		rule = apivalidation.NameIsDNSLabel // a pod's name is a host name
		errs = append(validateStatefulSet(&o.Spec, spec), validateClaims(&o.Spec, o.Name, spec)...)
	case *appsv1.DaemonSet:
		errs = validateDaemonSet(&o.Spec, spec)
	case *batchv1.Job:
		errs = validateJob(&o.Spec, spec)
		if podutil.IsIndexedJob(&o.Spec) || len(o.Name) > validation.DNS1123LabelMaxLength {
			rule = apivalidation.NameIsDNSLabel // it is a label of its pods
		}
	case *batchv1.CronJob:
		errs = validateCronJob(o, spec)
	}
	return append(apivalidation.ValidateObjectMeta(apiutil.ObjectMeta(object), true, rule, field.NewPath("metadata")), errs...)
}

// validateCount refuses negative numbers and unreasonably large ones.
func validateCount[T int32 | int64](n *T, path *field.Path) field.ErrorList {
	switch {
	case n == nil:
		return nil
	case *n < 0:
		return apivalidation.ValidateNonnegativeField(int64(*n), path)
	case int64(*n) > math.MaxInt32:
		return field.ErrorList{field.Invalid(path, *n, validation.InclusiveRangeError(0, math.MaxInt32))}
	}
	return nil
}

// validatePodCount checks a number of pods.
func validatePodCount(n *int32, path *field.Path) field.ErrorList {
	if n != nil && *n > maxPods {
		return field.ErrorList{field.Invalid(path, *n, fmt.Sprintf("must be at most %d: podrun creates no more pods of one object", maxPods))}
	}
	return validateCount(n, path)
}

// validateSelector checks a selector against the template, whose pods must not end.
func validateSelector(selector *metav1.LabelSelector, t *corev1.PodTemplateSpec, spec *field.Path) field.ErrorList {
	path := spec.Child("selector")
	var errs field.ErrorList
	if selector == nil {
		errs = append(errs, field.Required(path, ""))
	} else {
		errs = append(errs, metavalidation.ValidateLabelSelector(selector, metavalidation.LabelSelectorValidationOptions{}, path)...)
		if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
			errs = append(errs, field.Invalid(path, selector, "empty selector is invalid for deployment"))
		} else if s, err := metav1.LabelSelectorAsSelector(selector); err == nil && !s.Matches(labels.Set(t.Labels)) {
			errs = append(errs, field.Invalid(spec.Child("template", "metadata", "labels"), t.Labels, "`selector` does not match template `labels`"))
		}
	}
	return append(errs, validateEndlessPods(&t.Spec, spec.Child("template", "spec"))...)
}

// validateReplicationController checks a ReplicationController's spec (ValidateReplicationControllerSpec in
// pkg/apis/core/validation).
func validateReplicationController(s *corev1.ReplicationControllerSpec, spec *field.Path) field.ErrorList {
	errs := validatePodCount(s.Replicas, spec.Child("replicas"))
	errs = append(errs, validateCount(&s.MinReadySeconds, spec.Child("minReadySeconds"))...)
	if len(s.Selector) == 0 {
		errs = append(errs, field.Required(spec.Child("selector"), ""))
	} else if !labels.SelectorFromValidatedSet(s.Selector).Matches(labels.Set(s.Template.Labels)) {
		errs = append(errs, field.Invalid(spec.Child("template", "metadata", "labels"), s.Template.Labels, "`selector` does not match template `labels`"))
	}
	return append(errs, validateEndlessPods(&s.Template.Spec, spec.Child("template", "spec"))...)
}

// validateEndlessPods refuses fields of pods that end, for a workload that never does.
func validateEndlessPods(s *corev1.PodSpec, fieldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if p := s.RestartPolicy; p != corev1.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(fieldPath.Child("restartPolicy"), p, []corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if s.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(fieldPath.Child("activeDeadlineSeconds"), "activeDeadlineSeconds in such an object is not Supported"))
	}
	return errs
}

func validateDeployment(s *appsv1.DeploymentSpec, spec *field.Path) field.ErrorList {
	errs := validatePodCount(s.Replicas, spec.Child("replicas"))
	errs = append(errs, validateCount(&s.MinReadySeconds, spec.Child("minReadySeconds"))...)
	errs = append(errs, validateCount(s.RevisionHistoryLimit, spec.Child("revisionHistoryLimit"))...)
	errs = append(errs, validateCount(s.ProgressDeadlineSeconds, spec.Child("progressDeadlineSeconds"))...)
	if d := s.ProgressDeadlineSeconds; d != nil && *d <= s.MinReadySeconds {
		errs = append(errs, field.Invalid(spec.Child("progressDeadlineSeconds"), *d, "must be greater than minReadySeconds"))
	}
	path := spec.Child("strategy")
	errs = append(errs, oneOf(s.Strategy.Type, path.Child("type"), appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType)...)
	roll := s.Strategy.RollingUpdate
	switch {
	case s.Strategy.Type == appsv1.RecreateDeploymentStrategyType && roll != nil:
		errs = append(errs, field.Forbidden(path.Child("rollingUpdate"), "may not be specified when strategy `type` is 'Recreate'"))
	case roll != nil:
		errs = append(errs, validateRollingUpdate(roll.MaxUnavailable, roll.MaxSurge, path.Child("rollingUpdate"))...)
	}
	return append(errs, validateSelector(s.Selector, &s.Template, spec)...)
}

// validateRollingUpdate checks how many pods may be missing or in excess.
func validateRollingUpdate(unavailable, surge *intstr.IntOrString, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	zero := 0
	for name, v := range map[string]*intstr.IntOrString{"maxUnavailable": unavailable, "maxSurge": surge} {
		n, wrong := validateIntOrPercent(v, name == "maxUnavailable", path.Child(name))
		if errs = append(errs, wrong...); len(wrong) == 0 && n == 0 {
			zero++
		}
	}
	if zero == 2 {
		errs = append(errs, field.Invalid(path.Child("maxUnavailable"), unavailable, "may not be 0 when `maxSurge` is 0"))
	}
	return errs
}

// validateIntOrPercent checks a number of pods or a percentage, which may exceed 100 % unless bounded. It
// also returns the value scaled to 100 pods.
func validateIntOrPercent(v *intstr.IntOrString, bounded bool, fieldPath *field.Path) (int, field.ErrorList) {
	n, err := intstr.GetScaledValueFromIntOrPercent(v, 100, true)
	switch {
	case err != nil:
		return 0, field.ErrorList{field.Invalid(fieldPath, v, "must be an integer or percentage (e.g '5%')")}
	case n < 0:
		return 0, field.ErrorList{field.Invalid(fieldPath, v, apivalidation.IsNegativeErrorMsg)}
	case bounded && v.Type == intstr.String && n > 100:
		return 0, field.ErrorList{field.Invalid(fieldPath, v, "must not be greater than 100%")}
	}
	return n, nil
}

func validateStatefulSet(s *appsv1.StatefulSetSpec, spec *field.Path) field.ErrorList {
	errs := validatePodCount(s.Replicas, spec.Child("replicas"))
	errs = append(errs, validateCount(&s.MinReadySeconds, spec.Child("minReadySeconds"))...)
	errs = append(errs, validateCount(s.RevisionHistoryLimit, spec.Child("revisionHistoryLimit"))...)
	errs = append(errs, oneOf(s.PodManagementPolicy, spec.Child("podManagementPolicy"), appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement)...)
	errs = append(errs, checkOptional(s.ServiceName, spec.Child("serviceName"), validation.IsDNS1123Label)...)
	if s.Ordinals != nil {
		errs = append(errs, validateCount(&s.Ordinals.Start, spec.Child("ordinals", "start"))...)
	}
	path := spec.Child("updateStrategy")
	errs = append(errs, oneOf(s.UpdateStrategy.Type, path.Child("type"), appsv1.RollingUpdateStatefulSetStrategyType, appsv1.OnDeleteStatefulSetStrategyType)...)
	if roll := s.UpdateStrategy.RollingUpdate; roll != nil {
		if s.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
			errs = append(errs, field.Invalid(path.Child("rollingUpdate"), roll, "only allowed for updateStrategy 'RollingUpdate'"))
		}
		errs = append(errs, validateCount(roll.Partition, path.Child("rollingUpdate", "partition"))...)
		if v := roll.MaxUnavailable; v != nil {
			fieldPath := path.Child("rollingUpdate", "maxUnavailable")
			n, wrong := validateIntOrPercent(v, true, fieldPath)
			if errs = append(errs, wrong...); len(wrong) == 0 && n == 0 {
				errs = append(errs, field.Invalid(fieldPath, v, "cannot be 0"))
			}
		}
	}
	return append(errs, validateSelector(s.Selector, &s.Template, spec)...)
}

func validateDaemonSet(s *appsv1.DaemonSetSpec, spec *field.Path) field.ErrorList {
	errs := validateCount(&s.MinReadySeconds, spec.Child("minReadySeconds"))
	errs = append(errs, validateCount(s.RevisionHistoryLimit, spec.Child("revisionHistoryLimit"))...)
	path := spec.Child("updateStrategy")
	errs = append(errs, oneOf(s.UpdateStrategy.Type, path.Child("type"), appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType)...)
	if roll := s.UpdateStrategy.RollingUpdate; roll != nil && s.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		errs = append(errs, validateRollingUpdate(roll.MaxUnavailable, roll.MaxSurge, path.Child("rollingUpdate"))...)
	}
	return append(errs, validateSelector(s.Selector, &s.Template, spec)...)
}

// validateClaims checks the templates of a StatefulSet as the claims that they become. The API server
// refuses them only when it makes the claims.
func validateClaims(s *appsv1.StatefulSetSpec, set string, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	keys := map[string]bool{}
	for i := range s.VolumeClaimTemplates {
		c := &s.VolumeClaimTemplates[i]
		fieldPath := spec.Child("volumeClaimTemplates").Index(i)
		name := fieldPath.Child("metadata", "name")
		switch {
		case c.Name == "":
			errs = append(errs, field.Required(name, ""))
		case keys[c.Name]:
			errs = append(errs, field.Duplicate(name, c.Name))
		default: // it is the name of a volume, too
			errs = append(errs, checkRule(c.Name, name, validation.IsDNS1123Label)...)
		}
		keys[c.Name] = true
		for _, text := range validation.IsDNS1123Subdomain(podutil.StatefulSetClaimName(c.Name, set, maxPods)) {
			errs = append(errs, field.Invalid(name, c.Name, fmt.Sprintf("PVC name %q: %s", podutil.StatefulSetClaimName(c.Name, set, maxPods), text)))
		}
		errs = append(errs, validateClaimSpec(&c.Spec, fieldPath.Child("spec"))...)
	}
	p, fieldPath := s.PersistentVolumeClaimRetentionPolicy, spec.Child("persistentVolumeClaimRetentionPolicy")
	const retain, drop = appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	errs = append(errs, oneOf(p.WhenDeleted, fieldPath.Child("whenDeleted"), retain, drop)...)
	return append(errs, oneOf(p.WhenScaled, fieldPath.Child("whenScaled"), retain, drop)...)
}
