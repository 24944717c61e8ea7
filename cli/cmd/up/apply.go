package up

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/controller"
	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/podup"
	"github.com/podrun/podrun/cli/internal/printers"
)

// NewApplyCommand returns the command apply.
func NewApplyCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "apply",
		Usage:     "bring what manifests say into being, and return",
		ArgsUsage: "FILE... | -f FILE|DIRECTORY|URL | -",
		Description: `Keeps the ConfigMaps, Secrets, PersistentVolumeClaims, Services and Namespaces
of manifests for pods to refer to, and starts or changes their pods, as up does;
it does not wait for them to run, nor for images that are missing, which are
pulled in the background. Nothing is done unless all of it is right.
Pods that refer to an object which has changed are told; one that waits for it
starts.

Secrets are kept in memory only: a reboot clears them.

Examples:
  podrun apply -f settings.yaml
  podrun apply -f settings.yaml -f web.yaml
`,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "filename", Aliases: []string{"f"}, Usage: "apply what is in this `FILE` (- is standard input)"},
			cmdutil.ManifestNamespaceFlag(),
			&cli.BoolFlag{Name: "replace", Usage: "stop and remove a running pod that cannot become what its manifest says, and run it anew"},
			cmdutil.ResultFormatFlag(),
			cmdutil.DryRunFlag(cmdutil.DryRunUsage),
			cmdutil.StrictFlag(),
			cmdutil.PolicyFlag(),
			cmdutil.TLSVerifyFlag(),
		},
		Action: cmdutil.Action(printers.WithResult(env, printers.Function(runApply))),
	}
}

func runApply(env *cmdutil.Env, c *cli.Context) error {
	files := append(c.StringSlice("filename"), c.Args().Slice()...)
	if len(files) == 0 {
		return cmdutil.UsageErrorf("apply", "apply takes files")
	}
	if how := cmdutil.DryRunOf(c); how != cmdutil.DryRunNone {
		return dryRunClient(env, c, files, how)
	}
	signals, quiet := env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer quiet()
	defer env.StartPrespawn().End()
	l, _, err := newRun(env, c, files)
	if err != nil {
		return err
	}
	defer l.Release()
	l.ReportTo, l.Background = env.Out, true
	if err := cmdutil.Interruptible(c.Context, signals, l.Prepare); err != nil {
		return err
	}
	was := map[*podup.Target]string{}
	for _, p := range l.Targets {
		was[p] = p.Outcome()
	}
	err = l.Start()
	for _, p := range l.Started() {
		_, werr := fmt.Fprintf(env.Out, "pod/%s %s\n", p.Pod.Name, was[p])
		if p.AwaitsImages {
			fmt.Fprintf(env.ErrOut, "podrun: pod %[1]s waits for its images, which are pulled now; podrun events %[1]s shows how they come\n", p.Pod.Name)
		}
		err = errors.Join(err, werr)
	}
	for _, w := range l.WorkloadRefs() {
		err = errors.Join(err, controller.EnsureRunning(env, l.Dirs, w))
	}
	return err
}
