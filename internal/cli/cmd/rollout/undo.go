package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest/workloads"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/workload"
)

func newUndoCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "undo",
		Usage:     "go back to an earlier revision",
		ArgsUsage: usage,
		Description: `Rolls the template of an earlier revision out again: of the previous one,
or of --to-revision. It becomes the newest revision, with the next number.

Examples:
  podrun rollout undo deployment/web
  podrun rollout undo deployment/web --to-revision 2
`,
		Flags: resource.TargetFlags(
			&cli.IntFlag{Name: "to-revision", Usage: "go back to revision `N`; 0 is the previous one"},
			cmdutil.DryRunFlag(dryRunUsage),
		),
		Action: cmdutil.Action(func() cmdutil.Command { return &undoOptions{targets: targets{env: env}} }),
	}
}

type undoOptions struct {
	targets
	revision int // 0: the previous one
}

func (o *undoOptions) Complete(c *cli.Context) error {
	o.revision = c.Int("to-revision")
	return o.complete(c)
}

func (o *undoOptions) Validate() error {
	if o.revision < 0 {
		return cmdutil.UsageErrorf("rollout undo", "--to-revision must not be negative")
	}
	return nil
}

// errSameTemplate stops an undo to the template that the workload has.
var errSameTemplate = errors.New("the template is the same")

func (o *undoOptions) Run(ctx context.Context) error {
	return o.edit(ctx, "rolled back", func(v *resource.WorkloadInfo, object metav1.Object) error {
		if v.Spec.Paused {
			return report.New(report.Failure, "podrun rollout resume "+v.Name()+" resumes it", "you cannot rollback a paused deployment: %s is paused", v.Name())
		}
		r, err := o.earlier(v)
		if err != nil {
			return err
		}
		if r.Name == v.Spec.Revision {
			fmt.Fprintf(o.env.Out, "%s skipped rollback (current template already matches revision %d)\n", v.Name(), r.Number)
			return errSameTemplate
		}
		return workloads.RollBack(object, r, v.Object.DefaultedPullPolicies)
	})
}

// earlier returns the revision to go back to.
func (o *undoOptions) earlier(v *resource.WorkloadInfo) (*workload.Revision, error) {
	if o.revision > 0 {
		return findRevision(v, o.revision)
	}
	all := revisionsOf(v)
	if len(all) < 2 {
		return nil, report.New(report.Failure, "podrun rollout history "+v.Name()+" lists the revisions", "no rollout history found for %s", v.Name())
	}
	return &all[len(all)-2], nil
}

func newRestartCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "restart",
		Usage:     "create the pods of a workload again",
		ArgsUsage: usage,
		Description: `Creates the pods of workloads again, as a rollout with the same template and a
new annotation kubectl.kubernetes.io/restartedAt: a Deployment stays available
meanwhile. podrun restart restarts only the containers of pods.

Examples:
  podrun rollout restart deployment/web
  podrun rollout restart deployments -l app=web
`,
		Flags: resource.TargetFlags(cmdutil.DryRunFlag(dryRunUsage)),
		Action: editAction(env, "restarted", func(v *resource.WorkloadInfo, object metav1.Object) error {
			if v.Spec.Paused {
				return report.New(report.Failure, "podrun rollout resume "+v.Name()+" resumes it", "cannot restart %s: it is paused", v.Name())
			}
			workloads.RequestRestart(object, time.Now())
			return nil
		}),
	}
}

func newPauseCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "pause",
		Usage:     "pause the rollouts of a Deployment",
		ArgsUsage: usage,
		Description: `Pauses a Deployment: its pods keep their revisions until podrun rollout resume,
whatever is changed meanwhile. podrun pause freezes the processes of a pod.

Examples:
  podrun rollout pause deployment/web
`,
		Flags:  resource.TargetFlags(cmdutil.DryRunFlag(dryRunUsage)),
		Action: editAction(env, "paused", setPaused(true)),
	}
}

func newResumeCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "resume",
		Usage:     "resume the rollouts of a paused Deployment",
		ArgsUsage: usage,
		Description: `Resumes a paused Deployment: the changes since podrun rollout pause are rolled
out together.

Examples:
  podrun rollout resume deployment/web
`,
		Flags:  resource.TargetFlags(cmdutil.DryRunFlag(dryRunUsage)),
		Action: editAction(env, "resumed", setPaused(false)),
	}
}

// setPaused returns the change that pauses or resumes a Deployment.
func setPaused(paused bool) func(*resource.WorkloadInfo, metav1.Object) error {
	return func(v *resource.WorkloadInfo, object metav1.Object) error {
		d, ok := object.(*appsv1.Deployment)
		switch {
		case !ok:
			return report.New(report.Failure, "", "%s cannot be paused: only a Deployment can", v.Name())
		case d.Spec.Paused == paused && paused:
			return report.New(report.Failure, "podrun rollout resume "+v.Name()+" resumes it", "%s is already paused", v.Name())
		case d.Spec.Paused == paused:
			return report.New(report.Failure, "", "%s is not paused", v.Name())
		}
		d.Spec.Paused = paused
		return nil
	}
}

// editOptions are the command line of a command that makes one change, without options of its own.
type editOptions struct {
	targets
	done   string
	change func(*resource.WorkloadInfo, metav1.Object) error
}

func editAction(env *cmdutil.Env, done string, change func(*resource.WorkloadInfo, metav1.Object) error) cli.ActionFunc {
	return cmdutil.Action(func() cmdutil.Command {
		return &editOptions{targets: targets{env: env}, done: done, change: change}
	})
}

func (o *editOptions) Complete(c *cli.Context) error { return o.complete(c) }

func (o *editOptions) Validate() error { return nil }

func (o *editOptions) Run(ctx context.Context) error { return o.edit(ctx, o.done, o.change) }
