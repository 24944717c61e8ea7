package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/manifest/conversion"
	"github.com/podrun/podrun/manifest/printers"
	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/pod/glance"
)

// listing is what get shows of one kind.
type listing struct {
	kind    string // as names say it: pod, deployment.apps
	nowhere bool   // things of this kind are in no namespace
	head    func(wide bool) []string
	entries []entry
	unread  []string // the keys of those that are there and cannot be read
}

// entry is one thing of a listing.
type entry struct {
	namespace, name string
	pod             *known // of a pod
	labels          map[string]string
	row             func(wide bool, now time.Time) ([]string, error)
	object          func() (any, error) // as Kubernetes writes it
}

func (e *entry) key() string { return e.namespace + "/" + e.name }

// asked is what the words of get ask for, of one kind.
type asked struct {
	kind      pod.ObjectKind // "" are pods
	names     []string       // none are all
	namespace string         // of the names; "" is that of the command
}

// askedIn are the objects of files, as they are here. Those of kinds that mean nothing here
// are warned of.
func (f *front) askedIn(files []string) ([]asked, error) {
	sources, err := f.readAll(files)
	if err != nil {
		return nil, err
	}
	found, err := decoded(sources)
	if err != nil {
		return nil, err
	}
	var all []asked
	for i := range found {
		o := &found[i]
		if o.Value == nil {
			fmt.Fprintf(f.err, "podrun: warning: %s: podrun keeps no %s objects\n", report.Escape(where(o)), o.Kind)
			continue
		}
		a := asked{names: []string{o.Name()}, namespace: o.Value.GetNamespace()}
		if o.Pod == nil {
			a.kind, _, _ = objectWords([]string{o.Kind})
		}
		if n := len(all) - 1; n >= 0 && all[n].kind == a.kind && all[n].namespace == a.namespace {
			all[n].names = append(all[n].names, a.names...)
			continue
		}
		all = append(all, a)
	}
	return all, nil
}

// list looks up what is asked for. What cannot be found is in the error, beside the rest.
func (f *front) list(dirs store.Dirs, a asked, w *getWishes) (*listing, error) {
	if a.namespace != "" {
		own := *w
		own.namespace = a.namespace
		w = &own
	}
	switch {
	case a.kind == "":
		return listPods(dirs, a.names, w)
	case makesPods(a.kind):
		return listWorkloads(dirs, a, w)
	}
	return listKept(dirs, a, w)
}

func podHead(wide bool) []string {
	head := glance.Head()
	if wide {
		head = append(head, "IP", "NODE", "NOMINATED NODE", "READINESS GATES")
	}
	return head
}

func listPods(dirs store.Dirs, names []string, w *getWishes) (*listing, error) {
	l := &listing{kind: "pod", head: podHead}
	var places []store.Pod
	var errs []error
	if len(names) == 0 {
		var err error
		if places, err = listed(dirs, w.namespace, w.all); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		p, err := existing(dirs, w.namespace, name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		places = append(places, p)
	}
	for _, p := range places {
		k, err := know(p)
		switch {
		case err == nil:
			l.entries = append(l.entries, k.entry())
		case p.Exists() || len(names) > 0: // else it has gone meanwhile
			errs = append(errs, err)
		}
		if err != nil && p.Exists() {
			l.unread = append(l.unread, p.Namespace+"/"+p.Name)
		}
	}
	return l, errors.Join(errs...)
}

// entry is a pod in a list.
func (k known) entry() entry {
	return entry{
		namespace: k.manifest.Namespace, name: k.manifest.Name, pod: &k, labels: k.manifest.Labels,
		row: func(wide bool, now time.Time) ([]string, error) {
			r := printers.PodRow(k.manifest, k.status, now)
			row := r.Cells()
			if wide {
				rendered := manifest.Render(k.manifest, k.status)
				row = append(row, rendered.Status.PodIP, rendered.Spec.NodeName, "", openGates(rendered))
			}
			return row, nil
		},
		object: func() (any, error) { return manifest.Render(k.manifest, k.status), nil },
	}
}

func listWorkloads(dirs store.Dirs, a asked, w *getWishes) (*listing, error) {
	l := &listing{kind: kindWord(a.kind), head: func(wide bool) []string { return printers.WorkloadHeader(a.kind, wide) }}
	var errs []error
	add := func(v *view, err error) {
		if err != nil {
			errs = append(errs, err)
			return
		}
		now := v.now()
		l.entries = append(l.entries, entry{
			namespace: v.object.Namespace, name: v.object.Name, labels: v.object.Labels,
			row: func(wide bool, at time.Time) ([]string, error) { return printers.WorkloadRow(now, wide, at) }, object: func() (any, error) { return now.Render() },
		})
	}
	if len(a.names) == 0 {
		places, err := dirs.Workloads(w.in(a.kind), a.kind)
		if err != nil {
			return nil, err
		}
		for _, place := range places {
			if v, err := viewOf(dirs, place); !errors.Is(err, fs.ErrNotExist) {
				add(v, err)
			}
		}
	}
	for _, name := range a.names {
		add(workloadNamed(dirs, a.kind, w.namespace, name))
	}
	return l, errors.Join(errs...)
}

func listKept(dirs store.Dirs, a asked, w *getWishes) (*listing, error) {
	l := &listing{kind: kindWord(a.kind), nowhere: a.kind == pod.KindNamespace, head: func(wide bool) []string { return printers.ObjectHeader(a.kind, wide) }}
	var list []*pod.Object
	var errs []error
	named := func(name string) (*pod.Object, error) { return object(dirs, a.kind, w.namespace, name) }
	all := func() ([]*pod.Object, error) { return dirs.Objects(a.kind, w.in(a.kind)) }
	if a.kind == pod.KindNamespace {
		named = func(name string) (*pod.Object, error) { return namespaceNamed(dirs, name) }
		all = func() ([]*pod.Object, error) { return namespaces(dirs) }
	}
	if len(a.names) == 0 {
		var err error
		list, err = all()
		errs = append(errs, err)
	}
	for _, name := range a.names {
		o, err := named(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		list = append(list, o)
	}
	for _, o := range list {
		l.entries = append(l.entries, entry{
			namespace: o.Namespace, name: o.Name, labels: o.Labels,
			row:    func(wide bool, now time.Time) ([]string, error) { return printers.ObjectRow(o, wide, now), nil },
			object: func() (any, error) { return conversion.ToKubernetes(o, w.showSecrets) },
		})
	}
	return l, errors.Join(errs...)
}

// asked is askedBy, but for a word that names a kind which podrun does not keep: it is a pod if
// there is one of this name.
func (f *front) asked(c *cli.Context, words []string) ([]asked, error) {
	what, err := askedBy(words)
	if err == nil || len(words) > 1 || notKept(words[0]) == nil {
		return what, err
	}
	dirs, derr := f.dirs()
	if derr != nil {
		return nil, derr
	}
	if _, perr := existing(dirs, c.String("namespace"), words[0]); perr != nil {
		return nil, err
	}
	return []asked{{names: words}}, nil
}

// askedBy takes apart the words of get: kinds ("pods", "cm,secrets", "all") and names of
// them, names of one kind each (cm/a svc/b), or names of pods.
func askedBy(words []string) ([]asked, error) {
	var all []asked
	if strings.Contains(words[0], "/") {
		for _, word := range words {
			kind, name, slashed := strings.Cut(word, "/")
			if !slashed {
				return nil, usageErrorf("get", "either every word is a KIND/NAME or none: %q is none", word)
			}
			kinds := kindsNamed(kind)
			if len(kinds) != 1 {
				return nil, cmp.Or(notKept(kind), unknownKind(kind))
			}
			k := kinds[0]
			if n := len(all) - 1; n >= 0 && all[n].kind == k {
				all[n].names = append(all[n].names, name)
				continue
			}
			all = append(all, asked{kind: k, names: []string{name}})
		}
		return all, nil
	}
	parts := strings.Split(words[0], ",")
	if kindsNamed(parts[0]) == nil && len(parts) == 1 && notKept(parts[0]) == nil {
		return []asked{{names: words}}, nil
	}
	for _, part := range parts {
		kinds := kindsNamed(part)
		if kinds == nil {
			return nil, cmp.Or(notKept(part), unknownKind(part))
		}
		for _, k := range kinds {
			all = append(all, asked{kind: k, names: words[1:]})
		}
	}
	if len(all) > 1 && len(words) > 1 {
		return nil, usageErrorf("get", "names go with one kind: say KIND/NAME for things of several")
	}
	return all, nil
}

// kindsNamed are the kinds that a word names, of which "" are pods; nil if it names none.
func kindsNamed(word string) []pod.ObjectKind {
	switch strings.ToLower(word) {
	case "pods", "pod", "po":
		return []pod.ObjectKind{""}
	case "all":
		return append([]pod.ObjectKind{"", pod.KindService}, pod.Workloads()...)
	}
	if kind, _, ok := objectWords([]string{word}); ok {
		return []pod.ObjectKind{kind}
	}
	return nil
}
