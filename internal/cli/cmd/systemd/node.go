package systemd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/systemd"
)

func installNodeCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "install-node",
		Usage:     "create a unit that runs podrun node",
		ArgsUsage: "[-- OPTIONS OF podrun node]",
		Description: `Creates podrun-node.service and enables it: this host is a node of the cluster
that it has joined (podrun node join) from boot on. The pods keep running when
the unit stops or is started again. podrun systemd uninstall podrun-node removes
the unit.

Examples:
  podrun systemd install-node --now
  podrun systemd install-node --now -- --node-labels place=attic --max-pods 20
`,
		Flags: append(unitScopeFlags(),
			&cli.BoolFlag{Name: "now", Usage: "start the node, or start it again with the new options"},
		),
		Action: cmdutil.Action(func() cmdutil.Command { return &installNodeOptions{installOptions{unitOptions: unitOptions{env: env}}} }),
	}
}

type installNodeOptions struct{ installOptions }

func (o *installNodeOptions) Complete(c *cli.Context) error {
	o.now = c.Bool("now")
	return o.unitOptions.Complete(c)
}

func (o *installNodeOptions) Validate() error {
	if len(o.words) > 0 {
		if o.words[0] != "--" {
			return cmdutil.UsageErrorf("systemd install-node", "options of podrun node come after --, not %s", o.words[0])
		}
		o.words = o.words[1:]
	}
	return o.unitOptions.Validate()
}

func (o *installNodeOptions) Run(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find podrun's own program: %w", err)
	}
	u := &unitFile{name: systemd.NodeUnit, text: systemd.NodeFile(program, o.words, o.dirs.System), enable: true}
	signals, stop := o.env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return cmdutil.Interruptible(ctx, signals, func(ctx context.Context) error {
		return withoutUnit(o.install(ctx, u), append([]string{"node"}, o.words...)...)
	})
}

// withoutUnit returns the error of an installation with a hint for machines without systemd: the command line of podrun
// that does the same there, by words.
func withoutUnit(err error, words ...string) error {
	if !errors.Is(err, systemd.ErrNotBooted) {
		return err
	}
	return report.New(report.Failure, "podrun "+strings.Join(words, " ")+" runs without a unit", "%w", systemd.ErrNotBooted)
}
