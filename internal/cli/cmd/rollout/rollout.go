// Package rollout has the commands that change the pods of workloads: rollout, scale and set image.
package rollout

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/cli/controller"
	"github.com/podrun/podrun/internal/cli/internal/cmdline"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest/workloads"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

const usage = "KIND/NAME... | KIND -l SELECTOR | -f FILE"

const dryRunUsage = "change nothing, but check the change and print what would be done (=none, =client or =server)"

// NewCommand returns the command rollout.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:  "rollout",
		Usage: "follow, undo, restart or pause the rollout of a workload",
		Description: `Manages the rollout of Deployments, StatefulSets and DaemonSets, as kubectl
rollout does. A workload keeps the templates of its earlier revisions, as many
as its revisionHistoryLimit (10 if not given), across reboots.

Examples:
  podrun rollout status deployment/web
  podrun rollout history deployment/web
  podrun rollout undo deployment/web
`,
		Subcommands: []*cli.Command{newStatusCommand(env), newHistoryCommand(env), newUndoCommand(env), newRestartCommand(env), newPauseCommand(env), newResumeCommand(env)},
		Action:      cmdline.NeedSubcommand("rollout", "rollout requires one of status, history, undo, restart, pause and resume"),
	}
}

// targets are the workloads of a command.
type targets struct {
	env    *cmdutil.Env
	dirs   store.Dirs
	named  *resource.Targets
	dryRun cmdutil.DryRun
}

func (o *targets) complete(c *cli.Context) (err error) {
	o.dryRun = cmdutil.DryRunOf(c)
	o.named, err = resource.TargetsOf(o.env, c, c.Args().Slice())
	return err
}

// find returns the targets.
func (o *targets) find() (refs []kindnames.ObjectRef, err error) {
	if o.dirs, err = o.env.Dirs(); err != nil {
		return nil, err
	}
	return o.named.Find(o.dirs)
}

// workloads returns the targets with their state.
func (o *targets) workloads() ([]*resource.WorkloadInfo, error) {
	refs, err := o.find()
	if err != nil {
		return nil, err
	}
	controller.FinishInterrupted(o.env, o.dirs)
	var list []*resource.WorkloadInfo
	var errs []error
	for _, ref := range refs {
		if !workloads.HasRevisions(ref.Kind) {
			errs = append(errs, noRollout(ref))
			continue
		}
		v, err := resource.FindWorkload(o.dirs, ref.Kind, ref.Namespace, ref.Name)
		if err == nil {
			list = append(list, v)
		}
		errs = append(errs, err)
	}
	return list, errors.Join(errs...)
}

func noRollout(ref kindnames.ObjectRef) error {
	if ref.Kind == "" {
		return report.New(report.Usage, "podrun restart "+ref.Name+" restarts a pod's containers; a workload is named by KIND/NAME: deployment/"+ref.Name, "pod/%s has no rollout: a Deployment, StatefulSet or DaemonSet has one", ref.Name)
	}
	return report.New(report.Usage, "podrun get deployments,sts,ds lists those that have one", "%s/%s has no rollout: a Deployment, StatefulSet or DaemonSet has one", kindnames.Of(ref.Kind), ref.Name)
}

// edit changes the targets one after the other, and prints what was done to each.
func (o *targets) edit(ctx context.Context, done string, change func(*resource.WorkloadInfo, metav1.Object) error) error {
	list, err := o.workloads()
	errs := []error{err}
	for _, v := range list {
		ref := kindnames.ObjectRef{Kind: v.Object.Kind, Namespace: v.Object.Namespace, Name: v.Object.Name}
		_, err := controller.Edit(ctx, o.env, o.dirs, ref, o.dryRun, func(object metav1.Object) error { return change(v, object) })
		if errors.Is(err, errSameTemplate) {
			continue
		}
		if err == nil {
			o.print(v.Name(), done)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// print prints what was done to an object.
func (o *targets) print(name, done string) {
	if o.dryRun != cmdutil.DryRunNone {
		done += o.dryRun.Suffix()
	}
	fmt.Fprintf(o.env.Out, "%s %s\n", name, done)
}
