package objects

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/validation"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// Edit changes a stored object that the user has named, by a change of its Kubernetes form, with the checks
// of Apply. With dryRun it stores nothing. changed reports whether the object differs; it is an error if it
// is being removed. Claims are bound if the change permits it. Pods that refer to the object are notified.
func Edit(env *cmdutil.Env, dirs store.Dirs, ref kindnames.ObjectRef, dryRun cmdutil.DryRun, change func(metav1.Object) error) (changed bool, err error) {
	lock, err := dirs.LockObjects()
	if err != nil {
		return false, fmt.Errorf("cannot change %s/%s: %w", kindnames.Of(ref.Kind), ref.Name, err)
	}
	defer lock.Close()
	old, err := find(dirs, ref)
	switch {
	case err != nil:
		return false, err
	case old.IsFromCluster():
		return false, report.New(report.Failure, "kubectl changes it", "cannot change %s in namespace %s: it is from the cluster", kindnames.Display(old), old.Namespace)
	case old.Deleting:
		return false, report.New(report.Failure, "try again when it is removed", "%s is being removed", kindnames.Display(old))
	}
	o, err := manifest.Edit(old, change)
	if invalid := (*manifest.Errors)(nil); errors.As(err, &invalid) {
		return false, report.New(report.Usage, "", "cannot change %s\n%w", kindnames.Display(old), err)
	}
	if err != nil {
		return false, err
	}
	if _, err := validation.PodSecurityFromLabels(o.Stored.Labels); err != nil && ref.Kind == pod.KindNamespace {
		return false, report.New(report.Usage, "", "cannot change %s: %w", kindnames.Display(old), err)
	}
	k, err := Compare(env, dirs, o)
	if err != nil || k.Verb == "unchanged" || dryRun != cmdutil.DryRunNone {
		return k.Verb != "unchanged", err
	}
	if err := assignAddresses(dirs, []Change{k}, nil); err != nil {
		return false, err
	}
	if err := dirs.PutObject(k.Object); err != nil {
		return false, fmt.Errorf("cannot store %s: %w", kindnames.Display(k.Object), err)
	}
	changes, err := bindClaims(env, dirs, []Change{k})
	if !kindnames.IsWorkload(k.Object.Kind) {
		changes = append(changes, k.Object)
	}
	lock.Close()
	NotifyPods(context.Background(), env, dirs, changes)
	return true, err
}

// find returns a stored object. A namespace that is in use has an object that is not stored yet.
func find(dirs store.Dirs, ref kindnames.ObjectRef) (*pod.Object, error) {
	if ref.Kind != pod.KindNamespace {
		return resource.FindObject(dirs, ref.Kind, ref.Namespace, ref.Name)
	}
	return resource.FindNamespace(dirs, ref.Name)
}
