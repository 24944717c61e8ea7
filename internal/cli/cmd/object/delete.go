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
	"github.com/podrun/podrun/internal/cli/internal/podstop"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
)

// NewDeleteCommand returns the command delete.
func NewDeleteCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "delete",
		Usage:     "delete stored objects, pods and workloads",
		ArgsUsage: "KIND NAME... | KIND/NAME... | KIND,... -l|--all | -f",
		Description: `Deletes stored objects: ConfigMaps (cm), Secrets, PersistentVolumeClaims (pvc),
PersistentVolumes (pv), Services (svc), Namespaces (ns) and the other kinds that
podrun get lists; and stops and removes pods, and Deployments, Jobs and other
workloads with their pods, as down does; "all" means pods, Services and
workloads. An object that does not exist does not keep the others. Running pods
keep what they use of a deleted ConfigMap or Secret. A claim is deleted with its
directory, but not while a pod refers to it. The files of a PersistentVolume
stay; it is not deleted while a claim is bound to it. A Namespace is deleted
with all its objects and pods, claims included; the default Namespace cannot be
deleted.

Examples:
  podrun delete configmap settings
  podrun delete deployment/web pod/shell -n web
  podrun delete pods -l app=web
  podrun delete deploy,job --all
  podrun delete pod web --grace-period=0 --force
  podrun delete -f web.yaml
  podrun delete namespace web
`,
		Flags: append([]cli.Flag{
			cmdutil.NamespaceFlag(),
			&cli.StringSliceFlag{Name: "filename", Aliases: []string{"f"}, Usage: "delete the objects of this `FILE` (- is standard input)"},
			cmdutil.KustomizeFlag(),
			cmdutil.AllowRemoteFlag(),
			&cli.BoolFlag{Name: "ignore-not-found", Usage: "succeed if an object does not exist"},
			&cli.Int64Flag{Name: "grace-period", Value: -1, Usage: "wait this many `SECONDS` before SIGKILL, instead of the pod's own grace period; 0 without --force means 1"},
			&cli.BoolFlag{Name: "force", Usage: "kill pods at once, even if their supervisors do not answer"},
			&cli.BoolFlag{Name: "now", Usage: "as --grace-period=1"},
			&cli.BoolFlag{Name: "wait", Value: true, Usage: "wait until the pods are gone; --wait=false returns as soon as they end"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "print in this `FORMAT`: name"},
			resource.FieldSelectorFlag(),
		}, resource.SelectionFlags("the objects or pods of the kinds")...),
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
	grace          int64 // seconds; -1: the pod's own
	force, now     bool
	wait           bool
	format         string // "" or name

	queries []kindnames.Query // of the words
}

func (o *deleteOptions) Complete(c *cli.Context) (err error) {
	o.namespace, o.ignoreNotFound = c.String("namespace"), c.Bool("ignore-not-found")
	o.words, o.format = c.Args().Slice(), c.String("output")
	o.grace, o.force, o.now, o.wait = c.Int64("grace-period"), c.Bool("force"), c.Bool("now"), c.Bool("wait")
	if o.files, err = resource.FilesOf(o.env, c, nil); err != nil {
		return err
	}
	if o.chosen, err = resource.SelectionOf(c, len(o.files) > 0); err != nil || len(o.words) == 0 {
		return err
	}
	o.queries, err = resource.ParseKinds(o.words)
	return err
}

// Validate checks the options, with the rules of kubectl (k8s.io/kubectl/pkg/cmd/delete).
func (o *deleteOptions) Validate() error {
	named := slices.ContainsFunc(o.queries, func(q kindnames.Query) bool { return len(q.Names) > 0 })
	switch {
	case len(o.files) > 0 && len(o.words) > 0:
		return cmdutil.UsageErrorf("delete", "delete requires either names or -f, not both")
	case len(o.files)+len(o.words) == 0:
		return cmdutil.UsageErrorf("delete", "delete requires a kind and names, such as configmap NAME or deployment/NAME, or -f and a file")
	case o.chosen != nil && named:
		return cmdutil.UsageErrorf("delete", "name cannot be provided when a selector or --all is specified")
	case len(o.words) > 0 && !named && o.chosen == nil:
		return cmdutil.UsageErrorf("delete", "resource(s) were provided, but no name was specified")
	case o.now && o.grace != -1:
		return cmdutil.UsageErrorf("delete", "--now and --grace-period cannot be specified together")
	case o.force && (o.now || o.grace > 0):
		return cmdutil.UsageErrorf("delete", "--force and --grace-period greater than 0 cannot be specified together")
	case o.grace < -1:
		return cmdutil.UsageErrorf("delete", "--grace-period must not be negative")
	case o.format != "" && o.format != "name":
		return cmdutil.UsageErrorf("delete", "unexpected -o output mode: %s: only -o name is supported", o.format)
	}
	return nil
}

// how returns how pods are stopped. As with kubectl, 0 seconds are 1 without --force.
func (o *deleteOptions) how() podclient.StopOptions {
	how := podclient.StopOptions{Progress: o.env.ErrOut}
	switch {
	case o.force:
		how = podstop.Force(o.env.ErrOut)
		how.Progress = o.env.ErrOut
	case o.now || o.grace == 0:
		how.Grace = new(int64(1))
	case o.grace > 0:
		how.Grace = &o.grace
	}
	return how
}

// deleted prints that an object is deleted. stopped means that it has processes, which --force kills.
func (o *deleteOptions) deleted(name string, stopped bool) error {
	word := " deleted"
	switch {
	case o.format == "name":
		word = ""
	case stopped && o.force:
		word = " force deleted"
	}
	_, err := fmt.Fprintf(o.env.Out, "%s%s\n", name, word)
	return err
}

func (o *deleteOptions) Run(ctx context.Context) (err error) {
	if o.dirs, err = o.env.Dirs(); err != nil {
		return err
	}
	targets, pods, err := o.targets()
	if err != nil && len(targets)+len(pods) == 0 {
		return err
	}
	if o.chosen != nil && len(pods)+len(targets) == 0 {
		o.chosen.ReportEmpty(o.env)
		return nil
	}
	if o.force {
		fmt.Fprintln(o.env.ErrOut, "Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to run on the cluster indefinitely.")
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
	return errors.Join(err, o.deleteWorkloads(ctx, workloads), o.deletePods(ctx, pods, o.ignoreNotFound), o.deleteObjects(ctx, targets), o.deleteNamespaces(ctx, spaces))
}

// deleteObjects removes objects without processes.
func (o *deleteOptions) deleteObjects(ctx context.Context, targets []kindnames.ObjectRef) error {
	missing := func(t kindnames.ObjectRef) error {
		_, err := resource.FindObject(o.dirs, t.Kind, t.Namespace, t.Name)
		return err
	}
	if o.ignoreNotFound {
		missing = nil
	}
	return objects.Delete(ctx, o.env, o.dirs, targets, missing, func(name string) error { return o.deleted(name, false) })
}

// targets returns the objects and pods that the user named or selected. With an error it also returns what it has found.
func (o *deleteOptions) targets() (targets []kindnames.ObjectRef, pods []store.Pod, err error) {
	if len(o.files) > 0 {
		if targets, err = resource.ObjectsInFiles(o.env, o.files); err != nil {
			return nil, nil, err
		}
		if pods, err = resource.PodsInFiles(o.env, o.dirs, o.files); err != nil {
			return nil, nil, err
		}
		return targets, pods, nil
	}
	if o.chosen != nil {
		return o.chosen.OfKinds(o.dirs, o.queries)
	}
	for _, q := range o.queries {
		for _, name := range q.Names {
			if q.Kind != "" {
				targets = append(targets, kindnames.ObjectRef{Kind: q.Kind, Namespace: o.namespace, Name: name})
				continue
			}
			p, perr := resource.ResolvePod(o.dirs, o.namespace, name)
			switch {
			case perr == nil:
				pods = append(pods, p)
			case !o.ignoreNotFound || !errors.Is(perr, cmdutil.ErrNotFound):
				err = errors.Join(err, perr)
			}
		}
	}
	return targets, pods, err
}

// removeWorkload removes a workload with its pods; with --wait=false its controller does it after this command.
func (o *deleteOptions) removeWorkload(ctx context.Context, launcher cmdutil.PodLauncher, v *resource.WorkloadInfo) error {
	if o.wait {
		return controller.RemoveWorkload(ctx, o.env, o.dirs, launcher, v.Workload, o.how())
	}
	if err := controller.MarkDeleting(o.env, o.dirs, []store.Workload{v.Workload}); err != nil {
		return err
	}
	var errs []error
	if o.how().Grace != nil { // the controller stops the others with the grace periods of their own
		for _, p := range v.StoredPods {
			errs = append(errs, o.deletePod(ctx, p, launcher))
		}
	}
	return errors.Join(append(errs, controller.EnsureRunning(o.env, o.dirs, v.Workload))...)
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
			err = o.removeWorkload(ctx, launcher, v)
		}
		if err == nil {
			err = o.deleted(v.Name(), true)
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
			if errs[i] = o.deletePod(ctx, p, launcher); errs[i] == nil {
				errs[i] = o.deleted("pod/"+p.Name, true)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// deletePod stops and removes a pod. With --wait=false it returns when the pod is being removed.
func (o *deleteOptions) deletePod(ctx context.Context, p store.Pod, launcher cmdutil.PodLauncher) error {
	how := o.how()
	how.Remove = launcher.Remove
	if o.wait {
		return podclient.Down(ctx, o.dirs, p, how)
	}
	how.Progress = nil
	return podclient.BeginDown(ctx, o.dirs, p, how)
}
