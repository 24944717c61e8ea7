package follow

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/podset"
)

func rollbackCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "rollback",
		Usage:     "change a set to its former version",
		ArgsUsage: "NAME",
		Description: `Applies the version before the current one, with its images, as a whole. The
version that ran is not tried again by follow until the source changes, or with
--retry.

Examples:
  podrun follow rollback site
`,
		Flags: changeFlags(),
		Action: cmdutil.Action(func() cmdutil.Command {
			return &changeOptions{env: env, command: "rollback", word: "rolled back", change: (*podset.Transaction).RollBack}
		}),
	}
}

func rmCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "rm",
		Usage:     "remove a set with its pods and objects",
		ArgsUsage: "NAME",
		Description: `Stops and removes the pods, workloads and objects that the set has made, and
forgets the set. Claims stay, with their files. A timer that follows the set
makes it again: podrun systemd uninstall podrun-follow-NAME first.

Examples:
  podrun follow rm site
`,
		Action: cmdutil.Action(func() cmdutil.Command {
			return &changeOptions{env: env, command: "rm", word: "removed", change: (*podset.Transaction).Remove}
		}),
	}
}

// changeOptions are the command line of a command that changes a set without its source.
type changeOptions struct {
	env     *cmdutil.Env
	command string
	names   []string
	set     podset.Options
	word    string // for the result
	change  func(*podset.Transaction, context.Context) error
}

// Complete implements cmdutil.Command.
func (o *changeOptions) Complete(c *cli.Context) error {
	o.names = c.Args().Slice()
	o.set = podset.Options{Timeout: podset.DefaultTimeout, Stable: podset.DefaultStable}
	if c.IsSet("timeout") {
		o.set.Timeout = c.Duration("timeout")
	}
	if c.IsSet("stable") {
		o.set.Stable = c.Duration("stable")
	}
	return nil
}

// Validate implements cmdutil.Command.
func (o *changeOptions) Validate() error {
	if len(o.names) != 1 {
		return cmdutil.UsageErrorf("follow "+o.command, "follow %s requires the name of a set", o.command)
	}
	o.set.Name = o.names[0]
	return o.set.Validate("follow " + o.command)
}

// Run implements cmdutil.Command.
func (o *changeOptions) Run(ctx context.Context) error {
	dirs, err := o.env.Dirs()
	if err != nil {
		return err
	}
	if _, err := findSet(dirs, o.set.Name); err != nil {
		return err
	}
	err = podset.Change(ctx, o.env, o.set, o.change)
	if err == nil {
		fmt.Fprintf(o.env.Out, "set/%s %s\n", o.set.Name, o.word)
	}
	return err
}
