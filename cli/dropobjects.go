package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	slices.SortStableFunc(targets, func(a, b target) int { // namespaces last: what was in them is gone then
		return btoi(a.kind == pod.KindNamespace) - btoi(b.kind == pod.KindNamespace)
	})
	lock, err := dirs.LockObjects()
	if err != nil {
		return fmt.Errorf("cannot delete objects: %w", err)
	}
	var gone []*pod.Object
	var errs []error
	for _, t := range targets {
		if t.kind == pod.KindNamespace {
			if used, err := usedNamespaces(dirs); used[t.name] != nil || err != nil {
				errs = append(errs, err)
				continue
			}
		}
		o, err := f.deleteOne(dirs, t)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			errs = append(errs, err)
		default:
			fmt.Fprintf(f.out, "%s deleted\n", nameOf(o))
			gone = append(gone, o)
		}
	}
	lock.Close()
	f.tellPods(ctx, dirs, gone)
	return errors.Join(errs...)
}

// noteMade notes which objects of the launch are not there yet: it makes them.
func (l *launch) noteMade() {
	for i := range l.stored {
		o := l.stored[i].Stored
		if _, err := l.dirs.Object(o.Kind, o.Namespace, o.Name); errors.Is(err, fs.ErrNotExist) {
			l.created = append(l.created, target{o.Kind, o.Namespace, o.Name})
		}
	}
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
	if len(l.created) == 0 {
		return nil
	}
	return l.front.dropObjects(ctx, l.dirs, l.created)
}
