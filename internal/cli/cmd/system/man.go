package system

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdline"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
)

// NewManCommand returns the command man.
func NewManCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "man",
		Usage:     "print manual pages",
		ArgsUsage: "[COMMAND...]",
		Description: `Prints the manual page of podrun or of a command; --dir writes the pages of all
commands into a directory, for man.

Examples:
  podrun man up | man -l -
  podrun man --dir ~/.local/share/man/man1
`,
		Flags:  []cli.Flag{&cli.StringFlag{Name: "dir", Usage: "write all pages into this `DIRECTORY`, which is created if needed"}},
		Action: cmdutil.Action(func() cmdutil.Command { return &manOptions{env: env} }),
	}
}

type manOptions struct {
	env   *cmdutil.Env
	app   *cli.App
	dir   string
	words []string
}

func (o *manOptions) Complete(c *cli.Context) error {
	o.app, o.dir, o.words = c.App, c.String("dir"), c.Args().Slice()
	return nil
}

func (o *manOptions) Validate() error {
	if o.dir != "" && len(o.words) > 0 {
		return cmdutil.UsageErrorf("man", "--dir writes the pages of all commands: it accepts no names")
	}
	return nil
}

func (o *manOptions) Run(context.Context) error {
	if o.dir != "" {
		return cmdline.WriteMan(o.app, o.dir)
	}
	path, cmd, rest := cmdline.Find(o.app, o.words)
	if len(rest) > 0 {
		return cmdline.UnknownCommand(cmd.Subcommands, strings.Join(append([]string{"podrun"}, path...), " "), rest[0])
	}
	_, err := fmt.Fprint(o.env.Out, cmdline.ManPage(path, cmd, o.app))
	return err
}
