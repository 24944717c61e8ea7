package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// namespaces are those that are kept, those in use, and the default one, by name. One that
// is only in use is as old as the oldest thing in it.
func namespaces(dirs store.Dirs) ([]*pod.Object, error) {
	kept, err := dirs.Objects(pod.KindNamespace, "")
	used, uerr := usedNamespaces(dirs)
	for _, o := range kept {
		delete(used, o.Name)
	}
	kept = slices.AppendSeq(kept, maps.Values(used))
	slices.SortFunc(kept, func(a, b *pod.Object) int { return strings.Compare(a.Name, b.Name) })
	return kept, errors.Join(err, uerr)
}

// usedNamespaces are those that something is in, and the default one, by their names.
func usedNamespaces(dirs store.Dirs) (map[string]*pod.Object, error) {
	var errs []error
	used := map[string]*pod.Object{remote.DefaultNamespace: {Kind: pod.KindNamespace, Name: remote.DefaultNamespace}}
	use := func(name string, created time.Time) {
		o := used[name]
		if o == nil {
			o = &pod.Object{Kind: pod.KindNamespace, Name: name}
			used[name] = o
		}
		if o.CreatedAt.IsZero() || created.Before(o.CreatedAt) {
			o.CreatedAt = created
		}
	}
	for _, k := range objectKinds() {
		if k.kind == pod.KindNamespace {
			continue
		}
		list, err := dirs.Objects(k.kind, "")
		errs = append(errs, err)
		for _, o := range list {
			use(o.Namespace, o.CreatedAt)
		}
	}
	places, err := listed(dirs, "", true)
	errs = append(errs, err)
	for _, p := range places {
		use(p.Namespace, remote.MetadataOf(p).CreationTimestamp)
	}
	return used, errors.Join(errs...)
}

// namespaceNamed is one that the user has named.
func namespaceNamed(dirs store.Dirs, name string) (*pod.Object, error) {
	all, err := namespaces(dirs)
	for _, o := range all {
		if o.Name == name {
			return o, nil
		}
	}
	if err == nil {
		_, err = object(dirs, pod.KindNamespace, "", name)
	}
	return nil, err
}

// deleteNamespaces deletes namespaces with all that is in them: what makes pods, then the
// pods, then what these refer to.
func (f *front) deleteNamespaces(c *cli.Context, dirs store.Dirs, targets []target) error {
	var errs []error
	for _, t := range targets {
		switch _, err := namespaceNamed(dirs, t.name); {
		case t.name == remote.DefaultNamespace:
			errs = append(errs, report.New(report.Failure, "podrun get all,cm,secrets,pvc lists what is in it", "cannot delete namespace %s: it is always there", t.name))
		case err != nil && c.Bool("ignore-not-found") && errors.Is(missingObject(dirs, t), fs.ErrNotExist):
		case err != nil:
			errs = append(errs, err)
		default:
			errs = append(errs, f.deleteNamespace(c, dirs, t))
		}
	}
	return errors.Join(errs...)
}

// missingObject is why an object cannot be read, or nil.
func missingObject(dirs store.Dirs, t target) error {
	_, err := dirs.Object(t.kind, "", t.name)
	if errors.Is(err, store.ErrBadName) {
		return fs.ErrNotExist
	}
	return err
}

func (f *front) deleteNamespace(c *cli.Context, dirs store.Dirs, t target) error {
	keeper, err := f.rooms.pods(dirs)
	if err != nil {
		return err
	}
	for { // one may go with another, as the jobs of a cronjob do
		workloads, err := dirs.Workloads(t.name, pod.Workloads()...)
		if err != nil {
			return err
		}
		if len(workloads) == 0 {
			break
		}
		w := workloads[len(workloads)-1]
		if err := f.downWorkload(c.Context, dirs, keeper, w, ending{}); err != nil {
			return err
		}
		fmt.Fprintf(f.out, "%s/%s deleted\n", kindWord(w.Kind), w.Name)
	}
	places, err := dirs.Pods()
	if err != nil {
		return err
	}
	places = slices.DeleteFunc(places, func(p store.Pod) bool { return p.Namespace != t.name })
	if err := f.deletePods(c.Context, dirs, places, true); err != nil {
		return err
	}
	var inside []target
	for _, k := range objectKinds() {
		if k.kind == pod.KindNamespace {
			continue
		}
		list, err := dirs.Objects(k.kind, t.name)
		if err != nil {
			return err
		}
		for _, o := range list {
			inside = append(inside, target{k.kind, t.name, o.Name})
		}
	}
	if err := f.deleteAll(c.Context, dirs, inside, nil); err != nil {
		return err
	}
	err = dirs.DeleteObject(pod.KindNamespace, "", t.name)
	if err == nil || errors.Is(err, fs.ErrNotExist) { // it was only in use
		_, err = fmt.Fprintf(f.out, "namespace/%s deleted\n", t.name)
	}
	return err
}
