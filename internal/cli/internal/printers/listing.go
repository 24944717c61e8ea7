// Package printers lists and prints pods, workloads and objects as tables, JSON, YAML and by
// templates.
package printers

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/conversion"
	"github.com/podrun/podrun/internal/manifest/printers"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/pod/podrow"
	"github.com/podrun/podrun/internal/store"
)

// Listing is the result of get for one kind.
type Listing struct {
	Kind          string // as in printed names: pod, deployment.apps
	clusterScoped bool   // objects of this kind have no namespace
	Head          func(wide bool) []string
	Entries       []Entry
	Unread        []string // keys of entries that exist and cannot be read
}

// Entry is one row of a listing.
type Entry struct {
	Namespace, Name string
	Pod             *resource.PodInfo // set for a pod
	Labels          map[string]string
	Since           map[string]time.Time // by column of Row: the times from which an object's cells count until now
	Row             func(wide bool, now time.Time) ([]string, error)
	Object          func() (any, error) // in the form of the Kubernetes API
}

// Key returns NAMESPACE/NAME.
func (e *Entry) Key() string { return e.Namespace + "/" + e.Name }

// List reads the requested objects. The error joins those that are not found; the rest is returned too.
func List(env *cmdutil.Env, dirs store.Dirs, a kindnames.Query, w *PrintOptions) (*Listing, error) {
	if a.Namespace != "" {
		copied := *w
		copied.Namespace = a.Namespace
		w = &copied
	}
	switch {
	case a.Kind == "":
		return ListPods(dirs, a.Names, w)
	case kindnames.IsWorkload(a.Kind):
		return listWorkloads(dirs, a, w)
	}
	return listObjects(dirs, a, w)
}

func podHead(wide bool) []string {
	head := podrow.Header()
	if wide {
		head = append(head, "IP", "NODE", "NOMINATED NODE", "READINESS GATES")
	}
	return head
}

// ListPods returns the named pods, or all of the namespace.
func ListPods(dirs store.Dirs, names []string, w *PrintOptions) (*Listing, error) {
	l := &Listing{Kind: "pod", Head: podHead}
	var pods []store.Pod
	var errs []error
	if len(names) == 0 {
		var err error
		if pods, err = resource.ListPods(dirs, w.Namespace, w.All); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		p, err := resource.ExistingPod(dirs, w.Namespace, name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		pods = append(pods, p)
	}
	for _, p := range pods {
		k, err := resource.LoadPod(p)
		switch {
		case err == nil:
			l.Entries = append(l.Entries, NewPodEntry(k))
		case p.Exists() || len(names) > 0: // else it was removed meanwhile
			errs = append(errs, err)
		}
		if err != nil && p.Exists() {
			l.Unread = append(l.Unread, p.Namespace+"/"+p.Name)
		}
	}
	return l, errors.Join(errs...)
}

// NewPodEntry returns the entry of a pod.
func NewPodEntry(k resource.PodInfo) Entry {
	return Entry{
		Namespace: k.Manifest.Namespace, Name: k.Manifest.Name, Pod: &k, Labels: k.Manifest.Labels,
		Row: func(wide bool, now time.Time) ([]string, error) {
			r := printers.PodRow(k.Manifest, k.Status, now)
			row := r.Cells()
			if wide {
				rendered := manifest.Render(k.Manifest, k.Status)
				row = append(row, rendered.Status.PodIP, rendered.Spec.NodeName, "", openGates(rendered))
			}
			return row, nil
		},
		Object: func() (any, error) { return manifest.Render(k.Manifest, k.Status), nil },
	}
}

func listWorkloads(dirs store.Dirs, a kindnames.Query, w *PrintOptions) (*Listing, error) {
	l := &Listing{Kind: kindnames.Of(a.Kind), Head: func(wide bool) []string { return printers.WorkloadHeader(a.Kind, wide) }}
	var errs []error
	add := func(v *resource.WorkloadInfo, err error) {
		if err != nil {
			errs = append(errs, err)
			return
		}
		now := v.Current()
		since := map[string]time.Time{"AGE": v.Object.CreatedAt, "DURATION": now.State.Job.Started, "LAST SCHEDULE": now.State.Cron.Scheduled}
		if _, complete := now.State.Ended(); complete {
			delete(since, "DURATION")
		}
		l.Entries = append(l.Entries, Entry{
			Namespace: v.Object.Namespace, Name: v.Object.Name, Labels: v.Object.Labels, Since: withoutZero(since),
			Row: func(wide bool, moment time.Time) ([]string, error) { return printers.WorkloadRow(now, wide, moment) }, Object: func() (any, error) { return now.Render() },
		})
	}
	if len(a.Names) == 0 {
		workloads, err := dirs.Workloads(w.namespaceOf(a.Kind), a.Kind)
		if err != nil {
			return nil, err
		}
		for _, w := range workloads {
			if v, err := resource.LoadWorkload(dirs, w); !errors.Is(err, fs.ErrNotExist) {
				add(v, err)
			}
		}
	}
	for _, name := range a.Names {
		add(resource.FindWorkload(dirs, a.Kind, w.Namespace, name))
	}
	return l, errors.Join(errs...)
}

func listObjects(dirs store.Dirs, a kindnames.Query, w *PrintOptions) (*Listing, error) {
	l := &Listing{Kind: kindnames.Of(a.Kind), clusterScoped: a.Kind.ClusterScoped(), Head: func(wide bool) []string { return printers.ObjectHeader(a.Kind, wide) }}
	var list []*pod.Object
	var errs []error
	named := func(name string) (*pod.Object, error) { return resource.FindObject(dirs, a.Kind, w.Namespace, name) }
	all := func() ([]*pod.Object, error) { return resource.ListObjects(dirs, a.Kind, w.namespaceOf(a.Kind)) }
	switch a.Kind {
	case pod.KindEndpoints:
		named = func(name string) (*pod.Object, error) { return resource.FindEndpoints(dirs, w.Namespace, name) }
		all = func() ([]*pod.Object, error) { return resource.ListEndpoints(dirs, w.namespaceOf(a.Kind)) }
	case pod.KindNamespace:
		named = func(name string) (*pod.Object, error) { return resource.FindNamespace(dirs, name) }
		all = func() ([]*pod.Object, error) { return resource.ListNamespaces(dirs) }
	}
	if len(a.Names) == 0 {
		var err error
		list, err = all()
		errs = append(errs, err)
	}
	for _, name := range a.Names {
		o, err := named(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		list = append(list, o)
	}
	errs = append(errs, resource.SetVolumeStates(dirs, list))
	for _, o := range list {
		l.Entries = append(l.Entries, Entry{
			Namespace: o.Namespace, Name: o.Name, Labels: o.Labels, Since: withoutZero(map[string]time.Time{"AGE": o.CreatedAt}),
			Row:    func(wide bool, now time.Time) ([]string, error) { return printers.ObjectRow(o, wide, now), nil },
			Object: func() (any, error) { return conversion.ToKubernetes(o) },
		})
	}
	return l, errors.Join(errs...)
}

// withoutZero deletes the times that are not set.
func withoutZero(times map[string]time.Time) map[string]time.Time {
	maps.DeleteFunc(times, func(_ string, t time.Time) bool { return t.IsZero() })
	return times
}

// openGates returns how many of a pod's readiness gates are true, as kubectl counts them.
func openGates(p *corev1.Pod) string {
	if len(p.Spec.ReadinessGates) == 0 {
		return ""
	}
	open := 0
	for _, g := range p.Spec.ReadinessGates {
		for _, c := range p.Status.Conditions {
			if c.Type == g.ConditionType && c.Status == corev1.ConditionTrue {
				open++
			}
		}
	}
	return fmt.Sprintf("%d/%d", open, len(p.Spec.ReadinessGates))
}

// WatchedDirs returns the directories in which changes of the named pods appear; of all pods without
// names.
func WatchedDirs(dirs store.Dirs, names []string, w *PrintOptions) ([]string, error) {
	list, err := dirs.WatchDirs()
	if err != nil {
		return nil, err
	}
	pods, err := resource.ListPods(dirs, w.Namespace, w.All)
	if err != nil {
		return nil, err
	}
	for _, p := range pods {
		if len(names) == 0 || slices.Contains(names, p.Name) {
			list = append(list, p.RuntimeDir())
		}
	}
	return list, nil
}
