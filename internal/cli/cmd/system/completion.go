package system

import (
	"context"
	"embed"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/report"
)

// completions holds the completion scripts by shell.
//
//go:embed completion/podrun.*
var completions embed.FS

// NewCompletionCommand returns the command completion.
func NewCompletionCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print the completion script of a shell",
		ArgsUsage: "bash | zsh | fish",
		Description: `Prints a script that lets a shell complete commands, options and the names of
pods, containers, objects and images.

Examples:
  podrun completion bash > ~/.local/share/bash-completion/completions/podrun
  source <(podrun completion bash)
  podrun completion zsh > "${fpath[1]}/_podrun"
  podrun completion fish > ~/.config/fish/completions/podrun.fish
`,
		Action: cmdutil.Action(func() cmdutil.Command { return &completionOptions{env: env} }),
	}
}

type completionOptions struct {
	env   *cmdutil.Env
	words []string
}

func (o *completionOptions) Complete(c *cli.Context) error {
	o.words = c.Args().Slice()
	return nil
}

func (o *completionOptions) Validate() error {
	if len(o.words) != 1 {
		return cmdutil.UsageErrorf("completion", "completion requires the name of a shell: bash, zsh or fish")
	}
	return nil
}

func (o *completionOptions) Run(context.Context) error {
	text, err := completions.ReadFile("completion/podrun." + o.words[0])
	if err != nil {
		return report.New(report.Usage, "podrun completion --help", "no completion for %q: use bash, zsh or fish", o.words[0])
	}
	_, err = o.env.Out.Write(text)
	return err
}
