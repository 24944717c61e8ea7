// Package follow has the command follow, which keeps a set of manifests at the version of its source.
package follow

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/cli/internal/setreport"
	"github.com/podrun/podrun/internal/cli/podset"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/sleep"
	"github.com/podrun/podrun/internal/store"
)

// NewCommand returns the command follow.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "follow",
		Usage:     "keep a set of manifests at the newest version of its source",
		ArgsUsage: "oci://REFERENCE | oci:DIRECTORY | DIRECTORY | FILE",
		Description: `Looks at a source of manifests, and applies a new version as a whole: it fetches
all images first, then changes the pods and objects, removes what the new
version lacks, and watches until all are ready and stay so. If they do not, or
if the change is interrupted, the whole set goes back to its former version. A
version that has failed is not tried again until the source changes.

With --once it looks once, for a timer: podrun systemd install-follow makes one.
A look at an unchanged artifact asks for its digest only. After a restart of the
machine it starts the set first, which needs no network. Claims stay when the
set no longer has them. A set has a name, by which follow ls, status, history,
rollback and rm find it: the last part of the source, or --name.

Examples:
  podrun follow --once oci://registry.example.org/team/set:stable
  podrun follow --once --env-file box.env oci://reg.example/set:canary
  podrun follow --every 1m ./manifests
  podrun follow status set
`,
		Flags: append(append(sourceFlags(), changeFlags()...),
			cmdutil.ManifestNamespaceFlag(),
			&cli.BoolFlag{Name: "once", Usage: "look once, and return"},
			&cli.DurationFlag{Name: "every", Value: 15 * time.Minute, Usage: "without --once: look at the source every `DURATION`"},
			&cli.BoolFlag{Name: "retry", Usage: "also try a version that has failed before"},
			&cli.BoolFlag{Name: "allow-older", Usage: "also apply an artifact that was made before the one that runs"},
			&cli.StringFlag{Name: "report", Usage: "post how each change has ended to this `URL`, as Flux's webhooks do"},
			&cli.StringFlag{Name: "report-key", Usage: "sign reports with the key in this `FILE` (X-Signature, HMAC-SHA256)"},
		),
		Subcommands: []*cli.Command{lsCommand(env), statusCommand(env), historyCommand(env), rollbackCommand(env), rmCommand(env)},
		Action:      cmdutil.Action(func() cmdutil.Command { return &followOptions{env: env} }),
	}
}

// sourceFlags returns the flags for the source of a set, other than its namespace.
func sourceFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "name", Usage: "the `NAME` of the set"},
		cmdutil.PathFlag(), cmdutil.EnvFileFlag(), cmdutil.PolicyFlag(), cmdutil.UnsafeSysctlFlag(), cmdutil.TLSVerifyFlag(),
	}
}

// changeFlags returns the flags of commands that change a set.
func changeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.DurationFlag{Name: "timeout", Value: podset.DefaultTimeout, Usage: "go back if not all pods are ready after this `DURATION` (90s, 5m)"},
		&cli.DurationFlag{Name: "stable", Value: podset.DefaultStable, Usage: "all pods must stay ready without a restart for this `DURATION`"},
	}
}

// followOptions are the command line of follow.
type followOptions struct {
	env   *cmdutil.Env
	set   podset.Options
	once  bool
	every time.Duration
}

// Complete implements cmdutil.Command.
func (o *followOptions) Complete(c *cli.Context) (err error) {
	o.set = podset.Options{
		Name: c.String("name"), NameGiven: c.IsSet("name"), Files: c.Args().Slice(), UnsafeSysctls: c.StringSlice("allow-unsafe-sysctl"),
		Timeout: c.Duration("timeout"), Stable: c.Duration("stable"),
		Rules: podset.Rules{Retry: c.Bool("retry"), AllowOlder: c.Bool("allow-older")},
	}
	o.once, o.every = c.Bool("once"), c.Duration("every")
	o.set.Report = &store.SetReport{URL: c.String("report"), KeyFile: c.String("report-key")}
	o.env.Policy, o.env.Pull = c.String("policy"), o.env.RegistryOptions(c)
	o.env.ArtifactPath, o.env.EnvFiles = c.String("path"), c.StringSlice("env-file")
	return nil
}

// Validate implements cmdutil.Command.
func (o *followOptions) Validate() (err error) {
	switch {
	case len(o.set.Files) != 1:
		return cmdutil.UsageErrorf("follow", "follow requires one source: oci://REFERENCE, oci:DIRECTORY[:NAME], a directory or a file")
	case o.set.Files[0] == "-" || resource.IsURL(o.set.Files[0]):
		return cmdutil.UsageErrorf("follow", "follow reads artifacts, directories and files, not %s", resource.DisplayName(o.set.Files[0]))
	case o.every <= 0:
		return cmdutil.UsageErrorf("follow", "--every must not be %v", o.every)
	case o.set.Report.URL == "" && o.set.Report.KeyFile != "":
		return cmdutil.UsageErrorf("follow", "--report-key requires --report")
	}
	if err := o.validateReport(); err != nil {
		return err
	}
	o.set.Name, err = resource.SetName(o.set.Name, o.set.Files[0])
	return errors.Join(err, o.set.Validate("follow"))
}

// validateReport checks where changes are reported.
func (o *followOptions) validateReport() (err error) {
	if o.set.Report.URL == "" {
		return nil
	}
	if _, err = setreport.New(*o.set.Report); err == nil && o.set.Report.KeyFile != "" {
		o.set.Report.KeyFile, err = filepath.Abs(o.set.Report.KeyFile) // rollback reads it too
	}
	return err
}

// Run looks at the source, once or until it is interrupted.
func (o *followOptions) Run(ctx context.Context) error {
	signals, stop := o.env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return cmdutil.Interruptible(ctx, signals, func(ctx context.Context) error {
		for {
			err := o.look(ctx)
			if o.once || ctx.Err() != nil {
				return err
			}
			if err != nil {
				report.Print(o.env.ErrOut, err)
			}
			if err := sleep.For(ctx, o.every); err != nil {
				return err
			}
		}
	})
}

// look looks at the source once.
func (o *followOptions) look(ctx context.Context) error {
	t, err := podset.Begin(o.env, o.set)
	if err != nil {
		return err
	}
	defer t.Close()
	return t.Run(ctx)
}
