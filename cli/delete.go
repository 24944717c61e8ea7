package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

func (f *front) deleteCommand() *cli.Command {
	return &cli.Command{
		Name:      "delete",
		Usage:     "delete objects that are kept for pods, or pods",
		ArgsUsage: "KIND NAME... | KIND/NAME | KIND -l SELECTOR | -f FILE",
		Description: `Deletes a configmap (cm), secret, persistentvolumeclaim (pvc), service (svc) or
namespace (ns), or stops and removes a pod, or a deployment, job or the like
with its pods, as down does. Pods that run keep what they have of a deleted
configmap or secret. A claim is deleted with its directory, but not while a pod
refers to it. A namespace is deleted with all that is in it, claims included;
the default namespace cannot be deleted.

Examples:
  podrun delete configmap settings
  podrun delete secret/registry -n web
  podrun delete pods -l app=web
  podrun delete configmaps --all -n test
  podrun delete -f web.yaml
  podrun delete namespace web
`,
		Flags: append([]cli.Flag{
			namespaceFlag(),
			&cli.StringSliceFlag{Name: "filename", Aliases: []string{"f"}, Usage: "delete what is in this `FILE` (- is standard input)"},
			&cli.BoolFlag{Name: "ignore-not-found", Usage: "what is not there is no failure"},
		}, selectionFlags("the objects or pods of a kind")...),
		Action: f.delete,
	}
}

func (f *front) delete(c *cli.Context) error {
	words, files := c.Args().Slice(), c.StringSlice("filename")
	kind, names, ok := objectWords(words)
	about, podNames := podWords(words)
	if len(words) > 0 && !ok && !about {
		if err := notKept(words[0]); err != nil {
			return err
		}
	}
	chosen, err := selectionOf(c, len(files)+len(names)+len(podNames) > 0)
	switch {
	case err != nil:
		return err
	case len(files) > 0 && len(words) > 0:
		return usageErrorf("delete", "delete takes either names or -f, not both")
	case len(files) == 0 && !ok && !about:
		return usageErrorf("delete", "delete takes a kind and names, such as configmap NAME or deployment/NAME, or -f and a file")
	case len(files) == 0 && len(names)+len(podNames) == 0 && chosen == nil:
		return usageErrorf("delete", "delete takes the names of what is to be deleted")
	}
	dirs, err := f.dirs()
	if err != nil {
		return err
	}
	var targets []target
	var places []store.Pod
	switch {
	case chosen != nil && about:
		places, _, err = chosen.pods(dirs)
	case chosen != nil:
		targets, err = chosen.objects(dirs, kind)
	case len(files) > 0:
		if targets, err = f.targetsIn(files); err == nil {
			places, err = f.placesIn(dirs, files)
		}
	case about:
		for _, name := range podNames {
			p, perr := place(dirs, c.String("namespace"), name)
			places, err = append(places, p), errors.Join(err, perr)
		}
	default:
		for _, name := range names {
			targets = append(targets, target{kind, c.String("namespace"), name})
		}
	}
	if err != nil {
		return err
	}
	if chosen != nil && len(places)+len(targets) == 0 {
		chosen.none(f)
		return nil
	}
	var workloads, spaces []target
	targets = slices.DeleteFunc(targets, func(t target) bool {
		switch {
		case t.kind == pod.KindNamespace:
			spaces = append(spaces, t)
		case makesPods(t.kind):
			workloads = append(workloads, t)
		}
		return makesPods(t.kind) || t.kind == pod.KindNamespace
	})
	missing := func(t target) error {
		_, err := object(dirs, t.kind, t.namespace, t.name)
		return err
	}
	if c.Bool("ignore-not-found") {
		missing = nil
	}
	return errors.Join(f.deleteWorkloads(c, dirs, workloads), f.deletePods(c.Context, dirs, places, c.Bool("ignore-not-found")), f.deleteAll(c.Context, dirs, targets, missing), f.deleteNamespaces(c, dirs, spaces))
}

// podWords takes the words for pods: pod NAME..., or pod/NAME.
func podWords(words []string) (about bool, names []string) {
	if len(words) == 0 {
		return false, nil
	}
	if slices.Contains([]string{"pod", "pods", "po"}, words[0]) {
		return true, words[1:]
	}
	for _, kind := range []string{"pod/", "pods/", "po/"} {
		if len(words[0]) > len(kind) && words[0][:len(kind)] == kind {
			return true, words
		}
	}
	return false, nil
}

// target is an object that is to be deleted.
type target struct {
	kind            pod.ObjectKind
	namespace, name string
}

// targetsIn are the objects that files name, whatever else is in them.
func (f *front) targetsIn(files []string) ([]target, error) {
	sources, err := f.readAll(files)
	if err != nil {
		return nil, err
	}
	named, err := decoded(sources)
	var list []target
	for _, o := range named {
		for _, k := range objectKinds() {
			if string(k.kind) == o.Kind {
				list = append(list, target{k.kind, o.Value.GetNamespace(), o.Name()})
			}
		}
	}
	return list, err
}

// deleteWorkloads removes workloads with their pods, as down does.
func (f *front) deleteWorkloads(c *cli.Context, dirs store.Dirs, targets []target) error {
	var errs []error
	for _, t := range targets {
		v, err := workloadNamed(dirs, t.kind, t.namespace, t.name)
		if err != nil {
			if _, rerr := dirs.Object(t.kind, t.namespace, t.name); !errors.Is(rerr, fs.ErrNotExist) || !c.Bool("ignore-not-found") {
				errs = append(errs, err)
			}
			continue
		}
		keeper, err := f.rooms.pods(dirs)
		if err == nil {
			err = f.downWorkload(c.Context, dirs, keeper, v.place, ending{})
		}
		if err == nil {
			_, err = fmt.Fprintf(f.out, "%s deleted\n", v.name())
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (f *front) deletePods(ctx context.Context, dirs store.Dirs, places []store.Pod, lenient bool) error {
	places = unique(places)
	errs := make([]error, len(places))
	if len(places) == 0 {
		return nil
	}
	keeper, err := f.rooms.pods(dirs)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for i, p := range places {
		if !p.HasRemains() && !replacing(dirs, p) {
			if !lenient {
				errs[i] = noPod(dirs, p)
			}
			continue
		}
		all.Go(func() {
			if errs[i] = dirs.RemoveReplacement(p); errs[i] == nil {
				errs[i] = downTelling(ctx, f.err, keeper.remove, p, ending{})
			}
			if errs[i] == nil {
				fmt.Fprintf(f.out, "pod/%s deleted\n", p.Name)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// deleteAll deletes objects, and notifies the pods that refer to them. missing returns the error
// of an object that is not there; nil: there is none.
func (f *front) deleteAll(ctx context.Context, dirs store.Dirs, targets []target, missing func(target) error) error {
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
		o, err := f.deleteOne(dirs, t)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if missing != nil {
				errs = append(errs, missing(t))
			}
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

func (f *front) deleteOne(dirs store.Dirs, t target) (*pod.Object, error) {
	o, err := dirs.Object(t.kind, t.namespace, t.name)
	switch {
	case errors.Is(err, store.ErrBadName):
		return nil, fs.ErrNotExist
	case errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err != nil:
		o = &pod.Object{Kind: t.kind, Namespace: t.namespace, Name: t.name} // damaged: it can still be deleted
	}
	if err := inUse(dirs, t); err != nil {
		return nil, err
	}
	if t.kind == pod.KindClaim { // with what is in it, as of a class whose reclaimPolicy is Delete
		if err := f.removeClaim(dirs, t.namespace, t.name); err != nil {
			return nil, err
		}
	}
	return o, dirs.DeleteObject(t.kind, t.namespace, t.name)
}

// inUse is why an object cannot be deleted now, or nil.
func inUse(dirs store.Dirs, t target) error {
	if t.kind != pod.KindClaim {
		return nil
	}
	p, err := podThatRefers(dirs, t)
	if err == nil && p != "" {
		err = report.New(report.Failure, "podrun down "+p+" removes the pod", "cannot delete persistentvolumeclaim %s: pod %s uses it", t.name, p)
	}
	return err
}

// podThatRefers returns the name of a pod that refers to an object, or "".
func podThatRefers(dirs store.Dirs, t target) (string, error) {
	places, err := dirs.Pods()
	if err != nil {
		return "", err
	}
	for _, p := range places {
		plan, err := p.Plan()
		if err == nil && p.Namespace == t.namespace && plan.Refers(t.kind, t.name) {
			return p.Name, nil
		}
	}
	return "", nil
}
