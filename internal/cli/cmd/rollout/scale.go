package rollout

import (
	"context"
	"errors"
	"math"

	"github.com/urfave/cli/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/cli/controller"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest/workloads"
	"github.com/podrun/podrun/internal/report"
)

// NewScaleCommand returns the command scale.
func NewScaleCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "scale",
		Usage:     "set the number of pods of a workload",
		ArgsUsage: "--replicas N KIND/NAME... | -f FILE",
		Description: `Sets spec.replicas of Deployments, StatefulSets, ReplicaSets and
ReplicationControllers, and returns.
The next podrun apply or up of a manifest sets the number of the manifest again.

Examples:
  podrun scale --replicas=3 deployment/web
  podrun scale --replicas=0 -f web.yaml
  podrun scale --current-replicas=2 --replicas=3 statefulset/db
`,
		Flags: resource.TargetFlags(
			&cli.IntFlag{Name: "replicas", Value: -1, Usage: "the new `NUMBER` of pods"},
			&cli.IntFlag{Name: "current-replicas", Value: -1, Usage: "change nothing unless the present number is `NUMBER`"},
			cmdutil.DryRunFlag(dryRunUsage),
		),
		Action: cmdutil.Action(func() cmdutil.Command { return &scaleOptions{targets: targets{env: env}} }),
	}
}

type scaleOptions struct {
	targets
	replicas, current int // current -1: any
}

func (o *scaleOptions) Complete(c *cli.Context) error {
	o.replicas, o.current = c.Int("replicas"), c.Int("current-replicas")
	return o.complete(c)
}

func (o *scaleOptions) Validate() error {
	switch {
	case o.replicas < 0:
		return cmdutil.UsageErrorf("scale", "the --replicas=COUNT flag is required, and COUNT must be greater than or equal to 0")
	case o.replicas > math.MaxInt32:
		return cmdutil.UsageErrorf("scale", "--replicas must not be greater than %d", math.MaxInt32)
	case o.current < -1:
		return cmdutil.UsageErrorf("scale", "--current-replicas must not be negative")
	}
	return nil
}

func (o *scaleOptions) Run(ctx context.Context) error {
	refs, err := o.find()
	errs := []error{err}
	for _, ref := range refs {
		errs = append(errs, o.scale(ctx, ref))
	}
	return errors.Join(errs...)
}

func (o *scaleOptions) scale(ctx context.Context, ref kindnames.ObjectRef) error {
	name := kindnames.DisplayRef(ref)
	if ref.Kind == "" {
		return report.New(report.Usage, "podrun scale deployment/"+ref.Name+" scales the Deployment of that name", "pod/%s cannot be scaled: a Deployment, StatefulSet, ReplicaSet or ReplicationController can", ref.Name)
	}
	_, err := controller.Edit(ctx, o.env, o.dirs, ref, o.dryRun, func(object metav1.Object) error {
		n := workloads.Replicas(object)
		switch {
		case n == nil:
			return report.New(report.Usage, "", "%s cannot be scaled: a Deployment, StatefulSet, ReplicaSet or ReplicationController can", name)
		case o.current >= 0 && int(*n) != o.current:
			return report.New(report.Failure, "", "%s: expected replicas to be %d, was %d", name, o.current, *n)
		}
		*n = int32(o.replicas)
		return nil
	})
	if err == nil {
		o.print(name, "scaled")
	}
	return err
}
