package object

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/controller"
	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/kindnames"
	"github.com/podrun/podrun/cli/internal/objects"
	"github.com/podrun/podrun/cli/internal/podclient"
	"github.com/podrun/podrun/cli/internal/resource"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// NewDeleteCommand returns the command delete.
func NewDeleteCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "delete",
		Usage:     "delete stored objects, or pods",
		ArgsUsage: "KIND NAME... | KIND/NAME | KIND -l SELECTOR | -f FILE",
		Description: `Deletes a ConfigMap (cm), Secret, PersistentVolumeClaim (pvc), Service (svc) or
Namespace (ns), or stops and removes a pod, or a Deployment, Job or another
workload with its pods, as down does. Running pods keep what they use of a
deleted ConfigMap or Secret. A claim is deleted with its directory, but not
while a pod refers to it. A Namespace is deleted with all its objects and pods,
claims included; the default Namespace cannot be deleted.

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
		Action: func(c *cli.Context) error { return runDelete(env, c) },
	}
}

func runDelete(env *cmdutil.Env, c *cli.Context) error {
	words, files := c.Args().Slice(), c.StringSlice("filename")
	kind, names, ok := kindnames.ParseObjects(words)
	about, podNames := kindnames.ParsePods(words)
	if len(words) > 0 && !ok && !about {
		if err := kindnames.UnsupportedError(words[0]); err != nil {
			return err
		}
	}
	chosen, err := resource.SelectionOf(c, len(files)+len(names)+len(podNames) > 0)
	switch {
	case err != nil:
		return err
	case len(files) > 0 && len(words) > 0:
		return cmdutil.UsageErrorf("delete", "delete takes either names or -f, not both")
	case len(files) == 0 && !ok && !about:
		return cmdutil.UsageErrorf("delete", "delete takes a kind and names, such as configmap NAME or deployment/NAME, or -f and a file")
	case len(files) == 0 && len(names)+len(podNames) == 0 && chosen == nil:
		return cmdutil.UsageErrorf("delete", "delete takes the names of what is to be deleted")
	}
	dirs, err := env.Dirs()
	if err != nil {
		return err
	}
	var targets []kindnames.ObjectRef
	var places []store.Pod
	switch {
	case chosen != nil && about:
		places, _, err = chosen.Pods(dirs)
	case chosen != nil:
		targets, err = chosen.Objects(dirs, kind)
	case len(files) > 0:
		if targets, err = resource.ObjectsInFiles(env, files); err == nil {
			places, err = resource.PodsInFiles(env, dirs, files)
		}
	case about:
		for _, name := range podNames {
			p, perr := resource.ResolvePod(dirs, c.String("namespace"), name)
			places, err = append(places, p), errors.Join(err, perr)
		}
	default:
		for _, name := range names {
			targets = append(targets, kindnames.ObjectRef{Kind: kind, Namespace: c.String("namespace"), Name: name})
		}
	}
	if err != nil {
		return err
	}
	if chosen != nil && len(places)+len(targets) == 0 {
		chosen.ReportEmpty(env)
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
		_, err := resource.FindObject(dirs, t.Kind, t.Namespace, t.Name)
		return err
	}
	if c.Bool("ignore-not-found") {
		missing = nil
	}
	return errors.Join(deleteWorkloads(env, c, dirs, workloads), deletePods(c.Context, env, dirs, places, c.Bool("ignore-not-found")), objects.Delete(c.Context, env, dirs, targets, missing), deleteNamespaces(env, c, dirs, spaces))
}

// deleteWorkloads removes workloads with their pods, as down does.
func deleteWorkloads(env *cmdutil.Env, c *cli.Context, dirs store.Dirs, targets []kindnames.ObjectRef) error {
	var errs []error
	for _, t := range targets {
		v, err := resource.FindWorkload(dirs, t.Kind, t.Namespace, t.Name)
		if err != nil {
			if _, rerr := dirs.Object(t.Kind, t.Namespace, t.Name); !errors.Is(rerr, fs.ErrNotExist) || !c.Bool("ignore-not-found") {
				errs = append(errs, err)
			}
			continue
		}
		launcher, err := env.Deps.NewLauncher(dirs)
		if err == nil {
			err = controller.RemoveWorkload(c.Context, env, dirs, launcher, v.Place, podclient.StopOptions{})
		}
		if err == nil {
			_, err = fmt.Fprintf(env.Out, "%s deleted\n", v.Name())
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func deletePods(ctx context.Context, env *cmdutil.Env, dirs store.Dirs, places []store.Pod, lenient bool) error {
	places = resource.UniquePods(places)
	errs := make([]error, len(places))
	if len(places) == 0 {
		return nil
	}
	launcher, err := env.Deps.NewLauncher(dirs)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for i, p := range places {
		if !p.HasRemains() && !resource.HasReplacement(dirs, p) {
			if !lenient {
				errs[i] = resource.PodNotFound(dirs, p)
			}
			continue
		}
		all.Go(func() {
			if errs[i] = podclient.Down(ctx, dirs, p, podclient.StopOptions{Remove: launcher.Remove, Progress: env.ErrOut}); errs[i] == nil {
				fmt.Fprintf(env.Out, "pod/%s deleted\n", p.Name)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
