package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/reading"
	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest/printers"
	"github.com/podrun/podrun/manifest/workloads"
	"github.com/podrun/podrun/pod"
)

// selection is what --selector or --all choose, in the place of names.
type selection struct {
	labels     printers.Selector // everything, for --all
	namespace  string            // "": all of them
	everywhere bool
}

func selectionFlags(what string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "selector", Aliases: []string{"l"}, Usage: what + " that have the labels of this `SELECTOR`: app=web,tier!=db"},
		&cli.BoolFlag{Name: "all", Usage: "all of the namespace"},
		&cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "with --selector or --all: of all namespaces"},
	}
}

// selectionOf is what the flags choose, or nil if they choose nothing. named says whether there
// are names or files, too.
func selectionOf(c *cli.Context, named bool) (*selection, error) {
	command := c.Command.Name
	chosen := c.IsSet("selector") || c.Bool("all")
	switch {
	case !chosen && c.Bool("all-namespaces"):
		return nil, usageErrorf(command, "--all-namespaces goes with --selector or --all")
	case !chosen:
		return nil, nil
	case c.IsSet("selector") && c.Bool("all"):
		return nil, usageErrorf(command, "--selector and --all exclude each other")
	case c.IsSet("selector") && c.String("selector") == "":
		return nil, usageErrorf(command, "--selector must not be empty: --all chooses all")
	case named:
		return nil, usageErrorf(command, "--selector and --all choose by themselves: they do not go with names or files")
	}
	s := &selection{namespace: cmp.Or(c.String("namespace"), remote.DefaultNamespace), everywhere: c.Bool("all-namespaces")}
	if s.everywhere {
		s.namespace = ""
	}
	var err error
	if s.labels, err = printers.ParseSelector(c.String("selector")); err != nil {
		return nil, usageErrorf(command, "--selector cannot be %q: %v", c.String("selector"), err)
	}
	return s, nil
}

// pods are the pods that are chosen, with what is known of them.
func (s *selection) pods(dirs store.Dirs) ([]store.Pod, []known, error) {
	all, err := listed(dirs, s.namespace, s.everywhere)
	if err != nil {
		return nil, nil, err
	}
	var places []store.Pod
	var list []known
	var errs []error
	for _, p := range all {
		k, err := know(p)
		switch {
		case errors.Is(err, fs.ErrNotExist): // it is being removed
		case err != nil:
			errs = append(errs, err)
		case s.labels.Matches(k.manifest.Labels):
			places, list = append(places, p), append(list, k)
		}
	}
	return places, list, errors.Join(errs...)
}

// objects are the objects of kinds that are chosen, but for those that another one has made.
func (s *selection) objects(dirs store.Dirs, kinds ...pod.ObjectKind) ([]target, error) {
	var targets []target
	var errs []error
	for _, kind := range kinds {
		namespace := s.namespace
		if kind == pod.KindNamespace {
			namespace = ""
		}
		list, err := dirs.Objects(kind, namespace)
		errs = append(errs, err)
		for _, o := range list {
			if o.Owner == nil && s.labels.Matches(o.Labels) {
				targets = append(targets, target{kind, o.Namespace, o.Name})
			}
		}
	}
	return targets, errors.Join(errs...)
}

// makers are the workloads that are chosen.
func (s *selection) makers(dirs store.Dirs) ([]store.Workload, error) {
	targets, err := s.objects(dirs, pod.Workloads()...)
	var list []store.Workload
	for _, t := range targets {
		w, werr := dirs.Workload(t.kind, t.namespace, t.name)
		list, err = append(list, w), errors.Join(err, werr)
	}
	return list, err
}

// downSelected are the workloads that are chosen, and the pods, but for those that go with a workload.
func (s *selection) downSelected(dirs store.Dirs) ([]store.Workload, []store.Pod, error) {
	makers, err := s.makers(dirs)
	if err != nil {
		return nil, nil, err
	}
	places, list, err := s.pods(dirs)
	var alone []store.Pod
	for i, p := range places {
		if !s.goesWith(dirs, list[i], p, makers) {
			alone = append(alone, p)
		}
	}
	return makers, alone, err
}

// goesWith says whether a pod was made by one of workloads, or by a Job that one of them has made.
func (s *selection) goesWith(dirs store.Dirs, k known, p store.Pod, makers []store.Workload) bool {
	by := workloads.ControllerOf(k.manifest)
	for by != nil {
		owner := by.Owner
		if slices.ContainsFunc(makers, func(w store.Workload) bool {
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

// running are the pods that are chosen and that run. Those of a workload are left out for a verb
// that is not for them.
func (s *selection) running(f *front, dirs store.Dirs, verb string, owned bool) ([]store.Pod, error) {
	places, list, err := s.pods(dirs)
	var living []store.Pod
	for i, p := range places {
		by := workloads.ControllerOf(list[i].manifest)
		switch {
		case !p.Alive():
		case by != nil && !owned:
			fmt.Fprintf(f.err, "podrun: cannot %s pod %s: %s/%s makes it\n", verb, p.Name, kindWord(by.Owner.Kind), by.Owner.Name)
		default:
			living = append(living, p)
		}
	}
	return living, err
}

// none tells the user that nothing is chosen, as kubectl does.
func (s *selection) none(f *front) {
	fmt.Fprintln(f.err, reading.Empty(s.namespace, s.everywhere))
}
