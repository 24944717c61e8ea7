package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/manifest/conversion"
	"github.com/podrun/podrun/pod"
)

// keep makes the objects of manifests those of the machine. All are looked at before one
// is changed. It says what became of each, as kubectl apply does, and returns those that
// are not what they were.
func (f *front) keep(dirs store.Dirs, objects []manifest.Object, said io.Writer) ([]*pod.Object, error) {
	if len(objects) == 0 {
		return nil, nil
	}
	lock, err := dirs.LockObjects()
	if err != nil {
		return nil, fmt.Errorf("cannot keep objects: %w", err)
	}
	defer lock.Close()
	var changes []kept
	var errs []error
	for i := range objects {
		k, err := f.compared(dirs, &objects[i])
		changes, errs = append(changes, k), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if err := giveAddresses(dirs, changes); err != nil {
		return nil, err
	}
	var secrets []*pod.Object
	for _, k := range changes {
		secrets = append(secrets, k.object)
	}
	f.warnOfDisk(dirs, secrets)
	var changed []*pod.Object
	for _, k := range changes {
		if k.word != "unchanged" {
			if err := dirs.PutObject(k.object); err != nil {
				return changed, fmt.Errorf("cannot keep %s: %w", nameOf(k.object), err)
			}
			changed = append(changed, k.object)
		}
		fmt.Fprintf(said, "%s %s\n", nameOf(k.object), k.word)
	}
	return changed, nil
}

// giveAddresses gives new Services the addresses that they need.
func giveAddresses(dirs store.Dirs, changes []kept) error {
	all, err := dirs.Objects(pod.KindService, "")
	if err != nil {
		return fmt.Errorf("cannot give addresses to Services: %w", err)
	}
	networks := dirs.Networks(all)
	var errs []error
	for _, k := range changes {
		if k.object.Kind != pod.KindService || k.word == "unchanged" {
			continue
		}
		if k.word == "configured" {
			networks.Renumber(k.object.Service)
		}
		if err := networks.GiveAddresses(k.object, all); err != nil {
			errs = append(errs, report.New(report.Usage, "leave spec.clusterIP out, and podrun chooses an address", "cannot keep %s: %w", nameOf(k.object), err))
		}
		if err := givePorts(k, all); err != nil {
			errs = append(errs, err)
		}
		all = append(all, k.object)
	}
	return errors.Join(errs...)
}

// kept is one object and what becomes of it.
type kept struct {
	object *pod.Object
	word   string // created, configured, unchanged
}

// compared holds an object against what is kept of its name.
func (f *front) compared(dirs store.Dirs, o *manifest.Object) (kept, error) {
	next := o.Stored
	old, err := dirs.Object(next.Kind, next.Namespace, next.Name)
	if errors.Is(err, fs.ErrNotExist) {
		next.UID, next.CreatedAt, next.Revision = newUID(), time.Now().UTC(), 1
		return kept{next, "created"}, nil
	}
	if err != nil {
		return kept{}, fmt.Errorf("cannot keep %s: %w", nameOf(next), err)
	}
	if err := manifest.ValidateObjectUpdate(o, old); err != nil {
		return kept{}, report.New(report.Failure, fmt.Sprintf("podrun delete %s %s removes it, for another to be made", kindWord(next.Kind), next.Name), "cannot change %s\n%w", nameOf(next), err)
	}
	conversion.PreserveFrom(old, next)
	if conversion.Equal(old, next) {
		return kept{old, "unchanged"}, nil
	}
	next.Revision++
	return kept{next, "configured"}, nil
}

// nameOf is an object as messages have it: configmap/web.
func nameOf(o *pod.Object) string { return kindWord(o.Kind) + "/" + o.Name }
