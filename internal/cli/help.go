package cli

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdline"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
)

func newHelpCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "help",
		Usage:     "show the help of a command",
		ArgsUsage: "[COMMAND...]",
		Description: `Shows what a command does, as COMMAND --help does.

Examples:
  podrun help up
  podrun help image load
`,
		Action: func(c *cli.Context) error {
			path, cmd, rest := cmdline.Find(c.App, c.Args().Slice())
			if len(rest) > 0 {
				return cmdline.UnknownCommand(cmd.Subcommands, strings.Join(append([]string{"podrun"}, path...), " "), rest[0])
			}
			fmt.Fprint(env.Out, cmdline.Help(path, cmd, c.App))
			return nil
		},
	}
}
