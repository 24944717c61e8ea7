package up

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/controller"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/follow"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/printers"
)

// NewApplyCommand returns the command apply.
func NewApplyCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "apply",
		Usage:     "create or change the objects and pods of manifests, and return",
		ArgsUsage: "FILE... | -f FILE|DIRECTORY|URL|oci://REF | -k DIR | -",
		Description: `Stores the ConfigMaps, Secrets, PersistentVolumeClaims, PersistentVolumes,
Services, Namespaces and NetworkPolicies of manifests, binds the claims, and
starts or changes the pods, as up does. It does not wait for the pods to run,
nor for missing images, which are pulled in the background.
Nothing is changed unless all manifests are valid.
A changed object reaches the pods that refer to it; a pod that waits for one
starts.

Secrets are stored in memory only: a reboot clears them.

With --atomic the objects are one set, with a record of its own: all images are
fetched first, objects that the files no longer have are removed, and if the
pods do not become ready the whole set goes back to its former version. podrun
follow status, history, rollback and rm manage the set.

Examples:
  podrun apply -f settings.yaml
  podrun apply -f settings.yaml -f web.yaml
  podrun apply --atomic --name site -f manifests/
`,
		Flags: append([]cli.Flag{
			&cli.StringSliceFlag{Name: "filename", Aliases: []string{"f"}, Usage: "apply the objects of this `FILE` (- is standard input)"},
			cmdutil.KustomizeFlag(),
			cmdutil.AllowRemoteFlag(),
			cmdutil.PathFlag(),
			cmdutil.EnvFileFlag(),
			cmdutil.ManifestNamespaceFlag(),
			&cli.BoolFlag{Name: "replace", Usage: "stop and remove a running pod that cannot be changed to match its manifest, and create a new one"},
			cmdutil.ResultFormatFlag(),
			cmdutil.DryRunFlag(cmdutil.DryRunUsage),
			cmdutil.StrictFlag(),
			cmdutil.PolicyFlag(),
			cmdutil.UnsafeSysctlFlag(),
			cmdutil.TLSVerifyFlag(),
			&cli.DurationFlag{Name: "timeout", Usage: "with --atomic: go back if not all pods are ready after this `DURATION` (default: 5m)"},
		}, atomicFlags()...),
		Action: cmdutil.Action(printers.WithResult(env, func(env *cmdutil.Env) cmdutil.Command { return &applyOptions{newRunOptions(env)} })),
	}
}

// applyOptions are the options of apply.
type applyOptions struct{ runOptions }

// Complete reads the command line.
func (o *applyOptions) Complete(c *cli.Context) error {
	if err := o.complete(c); err != nil {
		return err
	}
	o.named = "apply"
	o.atomicOptions.complete(c)
	if c.IsSet("timeout") && !o.atomic {
		o.misplaced = append(o.misplaced, "--timeout")
	}
	return nil
}

// Validate checks the options.
func (o *applyOptions) Validate() error {
	if len(o.files) == 0 {
		return cmdutil.UsageErrorf("apply", "apply requires files")
	}
	return o.validateAtomic("apply")
}

// Run stores the objects, and starts or changes the pods.
func (o *applyOptions) Run(ctx context.Context) error {
	switch {
	case o.dryRun != cmdutil.DryRunNone:
		return o.runDry(ctx)
	case o.atomic:
		return o.runAtomic(ctx)
	}
	signals, stop := o.env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return o.run(ctx, signals, &applyHooks{commandHooks: commandHooks{env: o.env, options: &o.runOptions}})
}

// applyHooks are the hooks of apply, which does not wait for the pods.
type applyHooks struct {
	commandHooks
	outcomes map[*podup.Target]string
}

// Loaded has the run print each outcome on stdout.
func (a *applyHooks) Loaded(r *podup.Run, rule follow.ExitCodeFrom) error {
	r.ReportTo, r.Independent = a.env.Out, true
	return a.commandHooks.Loaded(r, rule)
}

// Prepared keeps the outcomes, which are not known after the start.
func (a *applyHooks) Prepared() error {
	a.outcomes = map[*podup.Target]string{}
	for _, p := range a.run.Targets {
		a.outcomes[p] = p.Outcome()
	}
	return nil
}

// AfterStart prints the outcomes, and starts the controllers of workloads.
func (a *applyHooks) AfterStart(_ context.Context, err error) error {
	for _, p := range a.run.Started() {
		_, werr := fmt.Fprintf(a.env.Out, "pod/%s %s\n", p.Pod.Name, a.outcomes[p])
		if p.AwaitsImages {
			fmt.Fprintf(a.env.ErrOut, "podrun: pod %[1]s waits for its images, which are being pulled; podrun events %[1]s shows the progress\n", p.Pod.Name)
		}
		err = errors.Join(err, werr)
	}
	for _, w := range a.run.WorkloadRefs() {
		err = errors.Join(err, controller.EnsureRunning(a.env, a.run.Dirs, w))
	}
	return err
}
