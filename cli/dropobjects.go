package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// dropObjects removes the objects of a file whose pods are gone: those that are there. Claims
// stay with what is in them, and a namespace in which something else is.
func (f *front) dropObjects(ctx context.Context, dirs store.Dirs, targets []target) error {
	if len(targets) == 0 {
		return nil
	}
	targets = slices.DeleteFunc(targets, func(t target) bool {
		if t.kind == pod.KindClaim {
			if _, err := dirs.Object(t.kind, t.namespace, t.name); err == nil {
				fmt.Fprintf(f.err, "podrun: persistentvolumeclaim/%s stays, with what is in it; podrun delete pvc %s deletes it\n", report.Escape(t.name), report.Escape(t.name))
			}
		}
		return t.kind == pod.KindClaim || makesPods(t.kind)
	})
	var spaces []target
	targets = slices.DeleteFunc(targets, func(t target) bool {
		if t.kind == pod.KindNamespace {
			spaces = append(spaces, t)
		}
		return t.kind == pod.KindNamespace
	})
	failed := f.deleteAll(ctx, dirs, targets, nil)
	if len(spaces) == 0 {
		return failed
	}
	used, err := usedNamespaces(dirs)
	if err != nil {
		return errors.Join(failed, err)
	}
	spaces = slices.DeleteFunc(spaces, func(t target) bool { return used[t.name] != nil })
	return errors.Join(failed, f.deleteAll(ctx, dirs, spaces, nil))
}

// undo is dropMade if a signal has ended the foreground.
func (l *launch) undo(ctx context.Context, how showing) error {
	if !how.signaled.Load() {
		return nil
	}
	return l.dropMade(ctx)
}

// dropMade removes the objects that an interrupted `podrun up` has made for its pods, unless one
// of these goes on running.
func (l *launch) dropMade(ctx context.Context) error {
	for _, p := range l.pods {
		if p.running {
			return nil
		}
	}
	var targets []target
	for _, o := range l.created {
		now, err := l.dirs.Object(o.Kind, o.Namespace, o.Name)
		if err != nil || now.UID != o.UID || now.Revision != o.Revision {
			continue // it is gone, or another command has changed it
		}
		used, err := referredTo(l.dirs, o)
		if err != nil {
			return err
		}
		if !used {
			targets = append(targets, target{o.Kind, o.Namespace, o.Name})
		}
	}
	return l.front.dropObjects(ctx, l.dirs, targets)
}

// referredTo reports whether a pod refers to an object. Every pod may use a Service: these do not count.
func referredTo(dirs store.Dirs, o *pod.Object) (bool, error) {
	if o.Kind == pod.KindService || o.Kind == pod.KindNamespace {
		return false, nil
	}
	p, err := podThatRefers(dirs, target{o.Kind, o.Namespace, o.Name})
	return p != "", err
}
