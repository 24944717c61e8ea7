package object

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/controller"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/objects"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
)

// NewDeleteCommand returns the command delete.
func NewDeleteCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "delete",
		Usage:     "delete stored objects, or pods",
		ArgsUsage: "KIND NAME... | KIND/NAME | KIND -l SELECTOR | -f FILE",
		Description: `Deletes a stored object: a ConfigMap (cm), Secret, PersistentVolumeClaim (pvc),
PersistentVolume (pv), Service (svc), Namespace (ns), NetworkPolicy (netpol) or
another kind that podrun get lists; or stops and removes a pod, or a Deployment,
Job or another workload with its pods, as down does. Running pods keep what they
use of a deleted ConfigMap or Secret. A claim is deleted with its directory, but
not while a pod refers to it. The files of a PersistentVolume stay; it is not
deleted while a claim is bound to it. A Namespace is deleted with all its
objects and pods, claims included; the default Namespace cannot be deleted.

Examples:
  podrun delete configmap settings
  podrun delete secret/registry -n web
  podrun delete pods -l app=web
  podrun delete configmaps --all -n test
  podrun delete -f web.yaml
  podrun delete namespace web
`,
		Flags: append([]cli.Flag{
			cmdutil.NamespaceFlag(),
			&cli.StringSliceFlag{Name: "filename", Aliases: []string{"f"}, Usage: "delete the objects of this `FILE` (- is standard input)"},
			&cli.BoolFlag{Name: "ignore-not-found", Usage: "succeed if an object does not exist"},
		}, resource.SelectionFlags("the objects or pods of a kind")...),
		Action: cmdutil.Action(func() cmdutil.Command { return &deleteOptions{env: env} }),
	}
}

type deleteOptions struct {
	env            *cmdutil.Env
	dirs           store.Dirs
	namespace      string
	words, files   []string
	ignoreNotFound bool
	chosen         *resource.Selection

	kind     pod.ObjectKind // of names
	names    []string
	hasKind  bool // words name a kind of objects
	hasPods  bool // words name pods
	podNames []string
}

func (o *deleteOptions) Complete(c *cli.Context) (err error) {
	o.namespace, o.ignoreNotFound = c.String("namespace"), c.Bool("ignore-not-found")
	o.words, o.files = c.Args().Slice(), c.StringSlice("filename")
	o.kind, o.names, o.hasKind = kindnames.ParseObjects(o.words)
	o.hasPods, o.podNames = kindnames.ParsePods(o.words)
	if len(o.words) > 0 && !o.hasKind && !o.hasPods {
		if err := kindnames.UnsupportedError(o.words[0]); err != nil {
			return err
		}
	}
	o.chosen, err = resource.SelectionOf(c, len(o.files)+len(o.names)+len(o.podNames) > 0)
	return err
}

func (o *deleteOptions) Validate() error {
	switch {
	case len(o.files) > 0 && len(o.words) > 0:
		return cmdutil.UsageErrorf("delete", "delete requires either names or -f, not both")
	case len(o.files) == 0 && !o.hasKind && !o.hasPods:
		return cmdutil.UsageErrorf("delete", "delete requires a kind and names, such as configmap NAME or deployment/NAME, or -f and a file")
	case len(o.files) == 0 && len(o.names)+len(o.podNames) == 0 && o.chosen == nil:
		return cmdutil.UsageErrorf("delete", "resource(s) were provided, but no name was specified")
	}
	return nil
}

func (o *deleteOptions) Run(ctx context.Context) (err error) {
	if o.dirs, err = o.env.Dirs(); err != nil {
		return err
	}
	targets, pods, err := o.targets()
	if err != nil {
		return err
	}
	if o.chosen != nil && len(pods)+len(targets) == 0 {
		o.chosen.ReportEmpty(o.env)
		return nil
	}
	var workloads, spaces []kindnames.ObjectRef
	targets = slices.DeleteFunc(targets, func(t kindnames.ObjectRef) bool {
		switch {
		case t.Kind == pod.KindNamespace:
			spaces = append(spaces, t)
		case kindnames.IsWorkload(t.Kind):
			workloads = append(workloads, t)
		}
		return kindnames.IsWorkload(t.Kind) || t.Kind == pod.KindNamespace
	})
	missing := func(t kindnames.ObjectRef) error {
		_, err := resource.FindObject(o.dirs, t.Kind, t.Namespace, t.Name)
		return err
	}
	if o.ignoreNotFound {
		missing = nil
	}
	return errors.Join(o.deleteWorkloads(ctx, workloads), o.deletePods(ctx, pods, o.ignoreNotFound), objects.Delete(ctx, o.env, o.dirs, targets, missing), o.deleteNamespaces(ctx, spaces))
}

// targets returns the objects and pods that the user named or selected.
func (o *deleteOptions) targets() (targets []kindnames.ObjectRef, pods []store.Pod, err error) {
	switch {
	case o.chosen != nil && o.hasPods:
		pods, _, err = o.chosen.Pods(o.dirs)
	case o.chosen != nil:
		targets, err = o.chosen.Objects(o.dirs, o.kind)
	case len(o.files) > 0:
		if targets, err = resource.ObjectsInFiles(o.env, o.files); err == nil {
			pods, err = resource.PodsInFiles(o.env, o.dirs, o.files)
		}
	case o.hasPods:
		for _, name := range o.podNames {
			p, perr := resource.ResolvePod(o.dirs, o.namespace, name)
			pods, err = append(pods, p), errors.Join(err, perr)
		}
	default:
		for _, name := range o.names {
			targets = append(targets, kindnames.ObjectRef{Kind: o.kind, Namespace: o.namespace, Name: name})
		}
	}
	return targets, pods, err
}

// deleteWorkloads removes workloads with their pods, as down does.
func (o *deleteOptions) deleteWorkloads(ctx context.Context, targets []kindnames.ObjectRef) error {
	var errs []error
	for _, t := range targets {
		v, err := resource.FindWorkload(o.dirs, t.Kind, t.Namespace, t.Name)
		if err != nil {
			if _, rerr := o.dirs.Object(t.Kind, t.Namespace, t.Name); !errors.Is(rerr, fs.ErrNotExist) || !o.ignoreNotFound {
				errs = append(errs, err)
			}
			continue
		}
		launcher, err := o.env.Deps.NewLauncher(o.dirs)
		if err == nil {
			err = controller.RemoveWorkload(ctx, o.env, o.dirs, launcher, v.Workload, podclient.StopOptions{})
		}
		if err == nil {
			_, err = fmt.Fprintf(o.env.Out, "%s deleted\n", v.Name())
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (o *deleteOptions) deletePods(ctx context.Context, pods []store.Pod, lenient bool) error {
	pods = resource.UniquePods(pods)
	errs := make([]error, len(pods))
	if len(pods) == 0 {
		return nil
	}
	launcher, err := o.env.Deps.NewLauncher(o.dirs)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for i, p := range pods {
		if !p.HasRemains() && !resource.HasReplacement(o.dirs, p) {
			if !lenient {
				errs[i] = resource.PodNotFound(o.dirs, p)
			}
			continue
		}
		all.Go(func() {
			if errs[i] = podclient.Down(ctx, o.dirs, p, podclient.StopOptions{Remove: launcher.Remove, Progress: o.env.ErrOut}); errs[i] == nil {
				fmt.Fprintf(o.env.Out, "pod/%s deleted\n", p.Name)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
