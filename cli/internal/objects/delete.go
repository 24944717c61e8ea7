package objects

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/kindnames"
	"github.com/podrun/podrun/cli/internal/resource"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// DeleteWithPods removes the existing objects of a file whose pods are gone. Claims stay, with their
// contents, and so does a namespace that is not empty.
func DeleteWithPods(ctx context.Context, env *cmdutil.Env, dirs store.Dirs, targets []kindnames.ObjectRef) error {
	if len(targets) == 0 {
		return nil
	}
	targets = slices.DeleteFunc(targets, func(t kindnames.ObjectRef) bool {
		if t.Kind == pod.KindClaim {
			if _, err := dirs.Object(t.Kind, t.Namespace, t.Name); err == nil {
				fmt.Fprintf(env.ErrOut, "podrun: persistentvolumeclaim/%s is kept with its files; podrun delete pvc %s deletes it\n", report.Escape(t.Name), report.Escape(t.Name))
			}
		}
		return t.Kind == pod.KindClaim || kindnames.IsWorkload(t.Kind)
	})
	var spaces []kindnames.ObjectRef
	targets = slices.DeleteFunc(targets, func(t kindnames.ObjectRef) bool {
		if t.Kind == pod.KindNamespace {
			spaces = append(spaces, t)
		}
		return t.Kind == pod.KindNamespace
	})
	failed := Delete(ctx, env, dirs, targets, nil)
	if len(spaces) == 0 {
		return failed
	}
	used, err := resource.NamespacesInUse(dirs)
	if err != nil {
		return errors.Join(failed, err)
	}
	spaces = slices.DeleteFunc(spaces, func(t kindnames.ObjectRef) bool { return used[t.Name] != nil })
	return errors.Join(failed, Delete(ctx, env, dirs, spaces, nil))
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
	if err := inUse(dirs, t); err != nil {
		return nil, err
	}
	if t.Kind == pod.KindClaim { // with its contents, as with the reclaimPolicy Delete
		if err := removeClaimDir(env, dirs, t.Namespace, t.Name); err != nil {
			return nil, err
		}
	}
	return o, dirs.DeleteObject(t.Kind, t.Namespace, t.Name)
}

// Delete removes one object, and with a claim its directory. It returns fs.ErrNotExist if there is none.
func Delete(ctx context.Context, env *cmdutil.Env, dirs store.Dirs, targets []kindnames.ObjectRef, missing func(kindnames.ObjectRef) error) error {
	if len(targets) == 0 {
		return nil
	}
	lock, err := dirs.LockObjects()
	if err != nil {
		return fmt.Errorf("cannot delete objects: %w", err)
	}
	var gone []*pod.Object
	var errs []error
	for _, t := range targets {
		o, err := deleteOne(env, dirs, t)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if missing != nil {
				errs = append(errs, missing(t))
			}
		case err != nil:
			errs = append(errs, err)
		default:
			fmt.Fprintf(env.Out, "%s deleted\n", kindnames.Display(o))
			gone = append(gone, o)
		}
	}
	lock.Close()
	NotifyPods(ctx, env, dirs, gone)
	return errors.Join(errs...)
}

// PodThatRefersTo returns the name of a pod that refers to an object, or "".
func PodThatRefersTo(dirs store.Dirs, t kindnames.ObjectRef) (string, error) {
	pods, err := dirs.Pods()
	if err != nil {
		return "", err
	}
	for _, p := range pods {
		plan, err := p.Plan()
		if err == nil && p.Namespace == t.Namespace && plan.Refers(t.Kind, t.Name) {
			return p.Name, nil
		}
	}
	return "", nil
}

// inUse returns why an object cannot be deleted now, or nil.
func inUse(dirs store.Dirs, t kindnames.ObjectRef) error {
	if t.Kind != pod.KindClaim {
		return nil
	}
	p, err := PodThatRefersTo(dirs, t)
	if err == nil && p != "" {
		err = report.New(report.Failure, "podrun down "+p+" removes the pod", "cannot delete persistentvolumeclaim %s: pod %s uses it", t.Name, p)
	}
	return err
}
