package resource

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/conversion"
	"github.com/podrun/podrun/internal/manifest/printers"
	"github.com/podrun/podrun/internal/manifest/workloads"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
)

// Selection is what --selector or --all select, instead of names.
type Selection struct {
	labels     printers.Selector      // matches everything for --all
	fields     printers.FieldSelector // nil: everything
	namespace  string                 // "": all of them
	everywhere bool
}

// SelectionFlags returns the flags --selector, --all and --all-namespaces.
func SelectionFlags(what string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "selector", Aliases: []string{"l"}, Usage: what + " that have the labels of this `SELECTOR`: app=web,tier!=db"},
		&cli.BoolFlag{Name: "all", Usage: "all " + strings.TrimPrefix(what, "the ") + " in the namespace"},
		&cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "with --selector or --all: of all namespaces"},
	}
}

// FieldSelectorFlag returns the flag --field-selector of commands with SelectionFlags.
func FieldSelectorFlag() cli.Flag {
	return &cli.StringFlag{Name: "field-selector", Usage: "those that have fields of this `SELECTOR`: status.phase=Running"}
}

// SelectionOf returns the selection of the flags, or nil if there is none. named means that there are
// also names or files.
func SelectionOf(c *cli.Context, named bool) (*Selection, error) {
	command := commandPath(c)
	chosen := c.IsSet("selector") || c.Bool("all") || c.IsSet("field-selector")
	switch {
	case !chosen && c.Bool("all-namespaces"):
		return nil, cmdutil.UsageErrorf(command, "--all-namespaces requires --selector or --all")
	case !chosen:
		return nil, nil
	case c.IsSet("selector") && c.Bool("all"):
		return nil, cmdutil.UsageErrorf(command, "--selector and --all are mutually exclusive")
	case c.IsSet("field-selector") && c.Bool("all"):
		return nil, cmdutil.UsageErrorf(command, "--field-selector and --all are mutually exclusive")
	case c.IsSet("selector") && c.String("selector") == "":
		return nil, cmdutil.UsageErrorf(command, "--selector must not be empty: --all selects all")
	case named:
		return nil, cmdutil.UsageErrorf(command, "--selector and --all cannot be combined with names or files")
	}
	s := &Selection{namespace: cmp.Or(c.String("namespace"), podclient.DefaultNamespace), everywhere: c.Bool("all-namespaces")}
	if s.everywhere {
		s.namespace = ""
	}
	var err error
	if s.labels, err = printers.ParseSelector(c.String("selector")); err != nil {
		return nil, cmdutil.UsageErrorf(command, "--selector cannot be %q: %v", c.String("selector"), err)
	}
	if c.IsSet("field-selector") {
		if s.fields, err = printers.ParseFieldSelector(c.String("field-selector")); err != nil {
			return nil, cmdutil.UsageErrorf(command, "--field-selector cannot be %q: %v", c.String("field-selector"), err)
		}
	}
	return s, nil
}

// matches reports whether an object with these labels is selected. object returns its form in the Kubernetes API.
func (s *Selection) matches(labels map[string]string, object func() (any, error)) (bool, error) {
	if !s.labels.Matches(labels) {
		return false, nil
	}
	if s.fields == nil {
		return true, nil
	}
	item, err := object()
	if err != nil {
		return false, err
	}
	return s.fields(item)
}

// Pods returns the selected pods with their status.
func (s *Selection) Pods(dirs store.Dirs) ([]store.Pod, []PodInfo, error) {
	all, err := ListPods(dirs, s.namespace, s.everywhere)
	if err != nil {
		return nil, nil, err
	}
	var pods []store.Pod
	var list []PodInfo
	var errs []error
	for _, p := range all {
		k, err := LoadPod(p)
		switch {
		case errors.Is(err, fs.ErrNotExist): // it is being removed
		case err != nil:
			errs = append(errs, err)
		default:
			ok, err := s.matches(k.Manifest.Labels, func() (any, error) { return manifest.Render(k.Manifest, k.Status), nil })
			if errs = append(errs, err); ok {
				pods, list = append(pods, p), append(list, k)
			}
		}
	}
	return pods, list, errors.Join(errs...)
}

// Objects returns the selected objects of kinds, except those that another object owns.
func (s *Selection) Objects(dirs store.Dirs, kinds ...pod.ObjectKind) ([]kindnames.ObjectRef, error) {
	var targets []kindnames.ObjectRef
	var errs []error
	for _, kind := range kinds {
		namespace := s.namespace
		if kind.ClusterScoped() {
			namespace = ""
		}
		list, err := dirs.Objects(kind, namespace)
		errs = append(errs, err)
		for _, o := range list {
			if o.Owner != nil {
				continue
			}
			ok, err := s.matches(o.Labels, func() (any, error) { return s.object(dirs, o) })
			if errs = append(errs, err); ok {
				targets = append(targets, kindnames.ObjectRef{Kind: kind, Namespace: o.Namespace, Name: o.Name})
			}
		}
	}
	return targets, errors.Join(errs...)
}

// object returns an object in the form of the Kubernetes API, a workload with its state.
func (s *Selection) object(dirs store.Dirs, o *pod.Object) (any, error) {
	if !kindnames.IsWorkload(o.Kind) {
		return conversion.ToKubernetes(o)
	}
	v, err := FindWorkload(dirs, o.Kind, o.Namespace, o.Name)
	if err != nil {
		return nil, err
	}
	return v.Current().Render()
}

// OfKinds returns the selected objects and pods of kinds, except what is removed with one of the objects.
func (s *Selection) OfKinds(dirs store.Dirs, kinds []kindnames.Query) (objects []kindnames.ObjectRef, pods []store.Pod, err error) {
	hasPods := false
	var makers []store.Workload
	for _, q := range kinds {
		if q.Kind == "" {
			hasPods = true
			continue
		}
		found, oerr := s.Objects(dirs, q.Kind)
		objects, err = append(objects, found...), errors.Join(err, oerr)
		for _, t := range found {
			if kindnames.IsWorkload(t.Kind) {
				w, werr := dirs.Workload(t.Kind, t.Namespace, t.Name)
				makers, err = append(makers, w), errors.Join(err, werr)
			}
		}
	}
	if hasPods {
		var perr error
		pods, perr = s.podsExceptOf(dirs, makers)
		err = errors.Join(err, perr)
	}
	return objects, pods, err
}

// workloads returns the selected workloads.
func (s *Selection) workloads(dirs store.Dirs) ([]store.Workload, error) {
	targets, err := s.Objects(dirs, pod.Workloads()...)
	var list []store.Workload
	for _, t := range targets {
		w, werr := dirs.Workload(t.Kind, t.Namespace, t.Name)
		list, err = append(list, w), errors.Join(err, werr)
	}
	return list, err
}

// WorkloadsAndPods returns the selected workloads and pods, except pods that are removed with one of
// these workloads.
func (s *Selection) WorkloadsAndPods(dirs store.Dirs) ([]store.Workload, []store.Pod, error) {
	makers, err := s.workloads(dirs)
	if err != nil {
		return nil, nil, err
	}
	alone, err := s.podsExceptOf(dirs, makers)
	return makers, alone, err
}

// podsExceptOf returns the selected pods that none of the workloads has made.
func (s *Selection) podsExceptOf(dirs store.Dirs, makers []store.Workload) ([]store.Pod, error) {
	pods, list, err := s.Pods(dirs)
	var alone []store.Pod
	for i, p := range pods {
		if !s.isOwnedBy(dirs, list[i], p, makers) {
			alone = append(alone, p)
		}
	}
	return alone, err
}

// isOwnedBy reports whether one of the workloads, or a Job of one, has made a pod.
func (s *Selection) isOwnedBy(dirs store.Dirs, k PodInfo, p store.Pod, owners []store.Workload) bool {
	by := workloads.ControllerOf(k.Manifest)
	for by != nil {
		owner := by.Owner
		if slices.ContainsFunc(owners, func(w store.Workload) bool {
			return w.Kind == owner.Kind && w.Namespace == p.Namespace && w.Name == owner.Name
		}) {
			return true
		}
		o, err := dirs.Object(owner.Kind, p.Namespace, owner.Name)
		if err != nil || o.Owner == nil {
			return false
		}
		by = &workloads.Controller{Owner: *o.Owner}
	}
	return false
}

// Running returns the selected pods that run. Unless owned is true, it omits pods of workloads, and reports that
// the verb does not apply to them.
func (s *Selection) Running(f *cmdutil.Env, dirs store.Dirs, verb string, owned bool) ([]store.Pod, error) {
	pods, list, err := s.Pods(dirs)
	var living []store.Pod
	for i, p := range pods {
		by := workloads.ControllerOf(list[i].Manifest)
		switch {
		case !p.Alive():
		case by != nil && !owned:
			fmt.Fprintf(f.ErrOut, "podrun: cannot %s pod %s: it is controlled by %s/%s\n", verb, p.Name, kindnames.Of(by.Owner.Kind), by.Owner.Name)
		default:
			living = append(living, p)
		}
	}
	return living, err
}

// ReportEmpty reports that nothing is selected, as kubectl does.
func (s *Selection) ReportEmpty(f *cmdutil.Env) {
	fmt.Fprintln(f.ErrOut, podview.NoResources(s.namespace, s.everywhere))
}
