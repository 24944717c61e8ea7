package rollout

import (
	"context"
	"errors"
	"strings"

	"github.com/urfave/cli/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/controller"
	"github.com/podrun/podrun/internal/cli/internal/cmdline"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest/workloads"
	"github.com/podrun/podrun/internal/report"
)

// NewSetCommand returns the command set.
func NewSetCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:  "set",
		Usage: "set the images of a workload or a pod",
		Description: `Changes the images of workloads and pods, as kubectl set image does. It is the
only subcommand of kubectl set that podrun has.

Examples:
  podrun set image deployment/web app=web:1.5
`,
		Subcommands: []*cli.Command{newSetImageCommand(env)},
		Action:      cmdline.NeedSubcommand("set", "set requires image"),
	}
}

func newSetImageCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "image",
		Usage:     "set the images of containers",
		ArgsUsage: "KIND/NAME... CONTAINER=IMAGE...",
		Description: `Sets images in the template of a workload, which rolls the change out, or in a
running pod, whose container is restarted alone. The name * stands for all
containers.

Examples:
  podrun set image deployment/web app=web:1.5
  podrun set image pod/web app=web:1.5
  podrun set image statefulset/db '*=postgres:17'
`,
		Flags:  resource.TargetFlags(cmdutil.DryRunFlag(dryRunUsage)),
		Action: cmdutil.Action(func() cmdutil.Command { return &setImageOptions{targets: targets{env: env}} }),
	}
}

type setImageOptions struct {
	targets
	images map[string]string // by container; "*": all
}

func (o *setImageOptions) Complete(c *cli.Context) (err error) {
	o.dryRun, o.images = cmdutil.DryRunOf(c), map[string]string{}
	words, pairs, err := resource.SplitChanges("set image", c.Args().Slice())
	if err != nil {
		return err
	}
	for _, pair := range pairs {
		container, ref, ok := strings.Cut(pair, "=")
		if !ok || ref == "" {
			return cmdutil.UsageErrorf("set image", "use CONTAINER=IMAGE, not %q", pair)
		}
		if err := image.ValidateName(ref); err != nil {
			return report.New(report.Usage, "", "cannot use image %s: %w", ref, err)
		}
		o.images[container] = ref
	}
	o.named, err = resource.TargetsOf(o.env, c, words)
	return err
}

func (o *setImageOptions) Validate() error {
	if len(o.images) == 0 {
		return cmdutil.UsageErrorf("set image", "at least one image update is required: CONTAINER=IMAGE")
	}
	return nil
}

func (o *setImageOptions) Run(ctx context.Context) error {
	refs, err := o.find()
	errs := []error{err}
	for _, ref := range refs {
		errs = append(errs, o.setImages(ctx, ref))
	}
	return errors.Join(errs...)
}

func (o *setImageOptions) setImages(ctx context.Context, ref kindnames.ObjectRef) error {
	name := kindnames.DisplayRef(ref)
	if ref.Kind != "" && !kindnames.IsWorkload(ref.Kind) {
		return report.New(report.Usage, "", "%s has no containers: a pod or a workload has", name)
	}
	changed, err := controller.Edit(ctx, o.env, o.dirs, ref, o.dryRun, func(object metav1.Object) error {
		if missing := workloads.SetImages(object, o.images); missing != "" {
			return report.New(report.Failure, "podrun describe "+name+" shows its containers", "%s: unable to find container named %q", name, missing)
		}
		return nil
	})
	if err == nil && changed { // as kubectl: nothing is printed for an image that is already set
		o.print(name, "image updated")
	}
	return err
}
