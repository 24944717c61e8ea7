package validation

import (
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/podrun/podrun/internal/manifest/podutil"
)

// PodSecurity is the policy of the Pod Security Standards for the pods of a namespace: the levels for
// refusing and for warning.
type PodSecurity struct{ enforce, warn api.LevelVersion }

// PodSecurityFromLabels returns the policy in a namespace's labels pod-security.kubernetes.io/….
func PodSecurityFromLabels(labels map[string]string) (PodSecurity, error) {
	all := api.LevelVersion{Level: api.LevelPrivileged, Version: api.LatestVersion()}
	p, errs := api.PolicyToEvaluate(labels, api.Policy{Enforce: all, Warn: all, Audit: all})
	return PodSecurity{p.Enforce, p.Warn}, errs.ToAggregate()
}

// PodSecurityLevel returns the policy that refuses pods which violate a level: privileged, baseline or
// restricted.
func PodSecurityLevel(level string) (PodSecurity, error) {
	if _, err := api.ParseLevel(level); err != nil {
		return PodSecurity{}, field.NotSupported(field.NewPath("policy"), level, []api.Level{api.LevelPrivileged, api.LevelBaseline, api.LevelRestricted})
	}
	return PodSecurityFromLabels(map[string]string{api.EnforceLevelLabel: level})
}

// Evaluate returns a pod's violations, or else warnings, in the words of Kubernetes' admission; "" if there
// are none.
func (p PodSecurity) Evaluate(object *corev1.Pod) (forbidden, warning string) {
	if forbidden = violations(object, p.enforce); forbidden == "" {
		warning = violations(object, p.warn)
	}
	return forbidden, warning
}

var evaluator = sync.OnceValues(func() (policy.Evaluator, error) {
	return policy.NewEvaluator(policy.DefaultChecks(), nil)
})

func violations(object *corev1.Pod, level api.LevelVersion) string {
	if level.Level == "" || level.Level == api.LevelPrivileged {
		return ""
	}
	checks, err := evaluator()
	if err != nil { // Kubernetes' own checks contradict each other
		return err.Error()
	}
	checked := object.DeepCopy()
	checked.Spec.HostNetwork = podutil.IsHostNetwork(object) // also if the annotation sets it
	result := policy.AggregateCheckResults(checks.EvaluatePod(level, &checked.ObjectMeta, &checked.Spec))
	var detail []string
	if !result.Allowed {
		detail = append(detail, result.ForbiddenDetail())
	}
	if object.Annotations[podutil.AnnotationHostLoopback] == "true" { // Kubernetes has no such setting
		detail = append(detail, fmt.Sprintf("the host's loopback (annotation %s)", podutil.AnnotationHostLoopback))
	}
	if detail == nil {
		return ""
	}
	return fmt.Sprintf("violates PodSecurity %q: %s", level.String(), strings.Join(detail, ", "))
}
