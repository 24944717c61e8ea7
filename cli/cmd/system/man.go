package system

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/cmdline"
	"github.com/podrun/podrun/cli/internal/cmdutil"
)

// NewManCommand returns the command man.
func NewManCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "man",
		Usage:     "print manual pages",
		ArgsUsage: "[COMMAND...]",
		Description: `Prints the manual page of podrun or of a command; --dir writes those of all
commands into a directory, for man.

Examples:
  podrun man up | man -l -
  podrun man --dir ~/.local/share/man/man1
`,
		Flags: []cli.Flag{&cli.StringFlag{Name: "dir", Usage: "write all pages into this `DIRECTORY`, which is created if needed"}},
		Action: func(c *cli.Context) error {
			if dir := c.String("dir"); dir != "" {
				if c.Args().Present() {
					return cmdutil.UsageErrorf("man", "--dir writes the pages of all commands: it takes no names")
				}
				return cmdline.WriteMan(c.App, dir)
			}
			path, cmd, rest := cmdline.Find(c.App, c.Args().Slice())
			if len(rest) > 0 {
				return cmdline.UnknownCommand(cmd.Subcommands, strings.Join(append([]string{"podrun"}, path...), " "), rest[0])
			}
			_, err := fmt.Fprint(env.Out, cmdline.ManPage(path, cmd, c.App))
			return err
		},
	}
}
