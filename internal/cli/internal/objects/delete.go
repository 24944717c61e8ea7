package objects

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// DeleteWithPods removes the existing objects of a file whose pods are gone. Claims stay, with their
// contents, and so do PersistentVolumes and a namespace that is not empty.
func DeleteWithPods(ctx context.Context, env *cmdutil.Env, dirs store.Dirs, targets []kindnames.ObjectRef) error {
	if len(targets) == 0 {
		return nil
	}
	targets = slices.DeleteFunc(targets, func(t kindnames.ObjectRef) bool {
		short := map[pod.ObjectKind]string{pod.KindClaim: "pvc", pod.KindVolume: "pv"}[t.Kind]
		if short != "" {
			if _, err := dirs.Object(t.Kind, t.Namespace, t.Name); err == nil {
				fmt.Fprintf(env.ErrOut, "podrun: %s/%s is kept with its files; podrun delete %s %s deletes it\n", kindnames.Of(t.Kind), report.Escape(t.Name), short, report.Escape(t.Name))
			}
		}
		return short != "" || kindnames.IsWorkload(t.Kind)
	})
	var spaces []kindnames.ObjectRef
	targets = slices.DeleteFunc(targets, func(t kindnames.ObjectRef) bool {
		if t.Kind == pod.KindNamespace {
			spaces = append(spaces, t)
		}
		return t.Kind == pod.KindNamespace
	})
	failed := Delete(ctx, env, dirs, targets, nil, printDeleted(env))
	if len(spaces) == 0 {
		return failed
	}
	used, err := resource.NamespacesInUse(dirs)
	if err != nil {
		return errors.Join(failed, err)
	}
	spaces = slices.DeleteFunc(spaces, func(t kindnames.ObjectRef) bool { return used[t.Name] != nil })
	return errors.Join(failed, Delete(ctx, env, dirs, spaces, nil, printDeleted(env)))
}

// printDeleted returns the report of a deleted object for Delete.
func printDeleted(env *cmdutil.Env) func(name string) error {
	return func(name string) error {
		_, err := fmt.Fprintf(env.Out, "%s deleted\n", name)
		return err
	}
}

func deleteOne(env *cmdutil.Env, dirs store.Dirs, t kindnames.ObjectRef) (*pod.Object, error) {
	o, err := dirs.Object(t.Kind, t.Namespace, t.Name)
	switch {
	case errors.Is(err, store.ErrBadName):
		return nil, fs.ErrNotExist
	case errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err != nil:
		o = &pod.Object{Kind: t.Kind, Namespace: t.Namespace, Name: t.Name} // a damaged object can be deleted
	}
	if err := inUse(dirs, o); err != nil {
		return nil, err
	}
	if t.Kind == pod.KindClaim { // with its directory, as with the reclaimPolicy Delete; a PersistentVolume keeps its files
		if err := removeClaimDir(env, dirs, t.Namespace, t.Name); err != nil {
			return nil, err
		}
	}
	return o, dirs.DeleteObject(t.Kind, t.Namespace, t.Name)
}

// Delete removes objects, and with a claim its directory, calls deleted for each, and notifies the pods that refer to
// them. PersistentVolumes are last: they cannot be deleted before their claims. Delete calls missing, if not
// nil, for an object that does not exist. The error joins all failures.
func Delete(ctx context.Context, env *cmdutil.Env, dirs store.Dirs, targets []kindnames.ObjectRef, missing func(kindnames.ObjectRef) error, deleted func(name string) error) error {
	if len(targets) == 0 {
		return nil
	}
	targets = slices.Clone(targets)
	slices.SortStableFunc(targets, func(a, b kindnames.ObjectRef) int {
		switch volume := pod.KindVolume; {
		case a.Kind == b.Kind || a.Kind != volume && b.Kind != volume:
			return 0
		case a.Kind == volume:
			return 1
		}
		return -1
	})
	lock, err := dirs.LockObjects()
	if err != nil {
		return fmt.Errorf("cannot delete objects: %w", err)
	}
	var gone []*pod.Object
	var errs []error
	for _, t := range targets {
		if t.Kind.ClusterScoped() {
			t.Namespace = ""
		}
		o, err := deleteOne(env, dirs, t)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if missing != nil {
				errs = append(errs, missing(t))
			}
		case err != nil:
			errs = append(errs, err)
		default:
			errs, gone = append(errs, deleted(kindnames.Display(o))), append(gone, o)
		}
	}
	lock.Close()
	NotifyPods(ctx, env, dirs, gone)
	return errors.Join(errs...)
}

// PodThatRefersTo returns the name of a pod that refers to an object of the user, or "".
func PodThatRefersTo(dirs store.Dirs, t kindnames.ObjectRef) (string, error) {
	pods, err := dirs.Pods()
	if err != nil {
		return "", err
	}
	for _, p := range pods {
		plan, err := p.Plan()
		if err == nil && p.Namespace == t.Namespace && !plan.InCluster() && plan.Refers(t.Kind, t.Name) {
			return p.Name, nil
		}
	}
	return "", nil
}

// inUse returns why an object cannot be deleted now, or nil.
func inUse(dirs store.Dirs, o *pod.Object) error {
	switch {
	case o.Kind == pod.KindClaim:
		p, err := PodThatRefersTo(dirs, kindnames.ObjectRef{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name})
		if err == nil && p != "" {
			err = report.New(report.Failure, "podrun down "+p+" removes the pod", "cannot delete persistentvolumeclaim %s: pod %s uses it", o.Name, p)
		}
		return err
	case o.PersistentVolume != nil:
		if err := resource.SetVolumeStates(dirs, []*pod.Object{o}); err != nil || o.PersistentVolume.Phase != pod.VolumeBound {
			return err
		}
		c := o.PersistentVolume.Claim
		return report.New(report.Failure, fmt.Sprintf("podrun delete pvc %s -n %s deletes the claim; the volume's files stay", c.Name, c.Namespace),
			"cannot delete persistentvolume %s: it is bound to the persistentvolumeclaim %s/%s", o.Name, c.Namespace, c.Name)
	}
	return nil
}
