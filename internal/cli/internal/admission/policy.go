package admission

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest/validation"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// CheckPodSecurity refuses pods that --policy or the labels of their namespaces forbid, and prints the
// warnings of these labels. For workloads it checks the template.
func CheckPodSecurity(env *cmdutil.Env, dirs store.Dirs, docs resource.Documents, level string) error {
	required := validation.PodSecurity{}
	if level != "" {
		var err error
		if required, err = validation.PodSecurityLevel(level); err != nil {
			return report.New(report.Usage, "", "--policy must be privileged, baseline or restricted, not %q", level)
		}
	}
	policies := map[string]validation.PodSecurity{}
	var errs []error
	for i := range docs.Stored {
		if o := &docs.Stored[i]; o.Kind == string(pod.KindNamespace) {
			p, err := validation.PodSecurityFromLabels(o.Value.GetLabels())
			if err != nil {
				errs = append(errs, report.New(report.Usage, "", "%s: Namespace %s: %w", resource.Location(o), o.Name(), err))
			}
			policies[o.Name()] = p
		}
	}
	for _, o := range slices.Concat(docs.Pods, resource.SamplePods(docs.Workloads)) {
		fromLabels, known := policies[o.Pod.Namespace]
		if !known {
			var err error
			if fromLabels, err = policyOf(dirs, o.Pod.Namespace); err != nil {
				return err
			}
		}
		for _, p := range []validation.PodSecurity{required, fromLabels} {
			forbidden, warning := p.Evaluate(o.Pod)
			if forbidden != "" {
				errs = append(errs, report.New(report.Usage, "", "%s: pod %s is %w: %s", resource.Location(&o), o.Pod.Name, cmdutil.ErrForbidden, forbidden))
				break
			}
			if warning != "" {
				fmt.Fprintln(env.ErrOut, report.Escape(fmt.Sprintf("podrun: warning: %s: pod %s would be forbidden: %s", resource.Location(&o), o.Pod.Name, warning)))
			}
		}
	}
	return errors.Join(errs...)
}

// CheckNamespacePolicy refuses a pod that the labels of its namespace forbid.
func CheckNamespacePolicy(dirs store.Dirs, object *corev1.Pod) error {
	p, err := policyOf(dirs, object.Namespace)
	if err != nil {
		return err
	}
	if forbidden, _ := p.Evaluate(object); forbidden != "" {
		return report.New(report.Failure, "podrun debug supports --profile=baseline and restricted; podrun get ns "+object.Namespace+" -o yaml shows what the namespace enforces", "it would be %w: %s", cmdutil.ErrForbidden, forbidden)
	}
	return nil
}

// policyOf returns the policy of a stored namespace, or none if the namespace is not stored.
func policyOf(dirs store.Dirs, namespace string) (validation.PodSecurity, error) {
	o, err := dirs.Object(pod.KindNamespace, "", namespace)
	if errors.Is(err, fs.ErrNotExist) {
		return validation.PodSecurityFromLabels(nil)
	}
	if err != nil {
		return validation.PodSecurity{}, err
	}
	return validation.PodSecurityFromLabels(o.Labels)
}
