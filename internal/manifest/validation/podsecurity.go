package validation

import (
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/manifest/apiutil"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

// PodSecurity is the policy of the Pod Security Standards for the pods of a namespace: the levels for
// refusing and for warning.
type PodSecurity struct{ enforce, warn api.LevelVersion }

// EnforceLabel is the label of a namespace with the level that its pods must meet.
const EnforceLabel = api.EnforceLevelLabel

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
// are none. volumeOf returns the PersistentVolume to which a claim of the pod's namespace is bound, or nil.
func (p PodSecurity) Evaluate(object *corev1.Pod, volumeOf func(claim string) *pod.Object) (forbidden, warning string) {
	if forbidden = violations(object, volumeOf, p.enforce); forbidden == "" {
		warning = violations(object, volumeOf, p.warn)
	}
	return forbidden, warning
}

// EvaluateVolume is Evaluate for a PersistentVolume: it gives pods a directory of the host, as hostPath does.
func (p PodSecurity) EvaluateVolume(v *pod.PersistentVolume) (forbidden string) {
	if !v.Mountable() || !restricts(p.enforce) {
		return ""
	}
	return fmt.Sprintf("violates PodSecurity %q: %s is a directory of the host", p.enforce.String(), v.Source)
}

// Enforced returns the level and the version that the policy enforces.
func (p PodSecurity) Enforced() string { return p.enforce.String() }

// IsWeakerThan reports whether the policy enforces less than another one: a lower level, or an older version of
// the standards.
func (p PodSecurity) IsWeakerThan(other PodSecurity) bool {
	return api.CompareLevels(p.enforce.Level, other.enforce.Level) < 0 || restricts(other.enforce) && p.enforce.Version.Older(other.enforce.Version)
}

var evaluator = sync.OnceValues(func() (policy.Evaluator, error) {
	return policy.NewEvaluator(policy.DefaultChecks(), nil)
})

// restricts reports whether a level refuses anything.
func restricts(level api.LevelVersion) bool {
	return level.Level != "" && level.Level != api.LevelPrivileged
}

func violations(object *corev1.Pod, volumeOf func(claim string) *pod.Object, level api.LevelVersion) string {
	if !restricts(level) {
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
	detail = append(detail, hostAccess(object, volumeOf)...)
	if detail == nil {
		return ""
	}
	return fmt.Sprintf("violates PodSecurity %q: %s", level.String(), strings.Join(detail, ", "))
}

// hostAccess returns what a pod reaches of the host that Kubernetes' checks do not know: in a cluster an
// administrator makes volumes and devices, here the manifest names them.
func hostAccess(object *corev1.Pod, volumeOf func(claim string) *pod.Object) (detail []string) {
	if object.Annotations[podutil.AnnotationHostLoopback] == "true" {
		detail = append(detail, fmt.Sprintf("the host's loopback (annotation %s)", podutil.AnnotationHostLoopback))
	}
	if object.Annotations[podutil.AnnotationSync] != "" {
		detail = append(detail, fmt.Sprintf("files of the host (annotation %s)", podutil.AnnotationSync))
	}
	if object.Annotations[podutil.AnnotationFreeHostPorts] == "true" {
		detail = append(detail, fmt.Sprintf("free ports of the host (annotation %s)", podutil.AnnotationFreeHostPorts))
	}
	for i := range object.Spec.Volumes {
		v := &object.Spec.Volumes[i]
		if v.PersistentVolumeClaim == nil {
			continue
		}
		if bound := volumeOf(v.PersistentVolumeClaim.ClaimName); bound != nil && bound.PersistentVolume.Mountable() {
			detail = append(detail, fmt.Sprintf("a directory of the host (volume %q: claim %q is bound to PersistentVolume %q, %s)",
				v.Name, v.PersistentVolumeClaim.ClaimName, bound.Name, bound.PersistentVolume.Source))
		}
	}
	if ptr.Deref(object.Spec.RuntimeClassName, "") == podutil.RuntimeNvidia {
		detail = append(detail, "devices of the host (runtimeClassName "+podutil.RuntimeNvidia+")")
	}
	for c := range podutil.Containers(&object.Spec) {
		names := podutil.DeviceNames(object, c)
		for _, d := range podutil.DeviceCounts(c) {
			names = append(names, d.Kind)
		}
		if names != nil {
			detail = append(detail, fmt.Sprintf("devices of the host (container %q: %s)", c.Name, apiutil.Truncate(strings.Join(names, ", "), 200)))
		}
	}
	return detail
}
