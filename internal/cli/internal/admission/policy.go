package admission

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/objects"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
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
	claims, err := resource.SampleClaims(docs.Workloads)
	if err != nil {
		return err
	}
	preview := previewBindings(dirs, slices.Concat(docs.Stored, claims))
	var errs []error
	for i := range docs.Stored {
		o := &docs.Stored[i]
		switch {
		case o.Kind == string(pod.KindNamespace):
			p, err := namespacePolicy(dirs, o)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: Namespace %s: %w", resource.Location(o), o.Name(), err))
			}
			policies[o.Name()] = p
		case o.Stored.PersistentVolume != nil:
			if forbidden := required.EvaluateVolume(o.Stored.PersistentVolume); forbidden != "" {
				errs = append(errs, report.New(report.Usage, "", "%s: PersistentVolume %s is %w: %s", resource.Location(o), o.Name(), cmdutil.ErrForbidden, forbidden))
			}
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
			forbidden, warning, err := evaluate(p, o.Pod, preview)
			if err != nil {
				return err
			}
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

// bindings is objects.PreviewBindings for given objects.
type bindings func() (volumeOf func(namespace, claim string) *pod.Object, err error)

// previewBindings reads the store when it is called first: most pods have no claim.
func previewBindings(dirs store.Dirs, next []manifest.Object) bindings {
	return sync.OnceValues(func() (func(namespace, claim string) *pod.Object, error) { return objects.PreviewBindings(dirs, next) })
}

// evaluate is PodSecurity.Evaluate with the PersistentVolumes of a preview.
func evaluate(p validation.PodSecurity, object *corev1.Pod, preview bindings) (forbidden, warning string, err error) {
	forbidden, warning = p.Evaluate(object, func(claim string) *pod.Object {
		volumeOf, previewErr := preview()
		if previewErr != nil {
			err = previewErr
			return nil
		}
		return volumeOf(object.Namespace, claim)
	})
	return forbidden, warning, err
}

// namespacePolicy returns the policy in the labels of a namespace in a manifest. It refuses one that is weaker
// than what the namespace enforces now: only podrun label takes a policy back.
func namespacePolicy(dirs store.Dirs, o *manifest.Object) (validation.PodSecurity, error) {
	next, err := validation.PodSecurityFromLabels(o.Value.GetLabels())
	if err != nil {
		return next, report.New(report.Usage, "", "%w", err)
	}
	enforced, err := policyOf(dirs, o.Name())
	if err == nil && next.IsWeakerThan(enforced) {
		err = report.New(report.Usage, fmt.Sprintf("set the label %s in the manifest, or change it by podrun label namespace %s", validation.EnforceLabel, o.Name()),
			"a manifest may not lower what the namespace enforces, %s", enforced.Enforced())
	}
	return next, err
}

// CheckNamespacePolicy refuses a pod that the labels of its namespace forbid.
func CheckNamespacePolicy(dirs store.Dirs, object *corev1.Pod) error {
	p, err := policyOf(dirs, object.Namespace)
	if err != nil {
		return err
	}
	forbidden, _, err := evaluate(p, object, previewBindings(dirs, nil))
	if err != nil {
		return err
	}
	if forbidden != "" {
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
