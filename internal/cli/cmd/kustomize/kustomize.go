// Package kustomize has the command kustomize.
package kustomize

import (
	"context"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kustomize"
)

// NewCommand returns the command kustomize.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "kustomize",
		Usage:     "print the objects of a kustomization",
		ArgsUsage: "[DIRECTORY]",
		Description: `Builds the kustomization in a directory, the current one if none is given, and
prints its objects, as kubectl kustomize does. Plugins and helm charts are
refused, and so are files outside of the directory. Bases by git and http need
--allow-remote.

podrun up, apply, create, delete, diff and validate take the directory with -k.

Examples:
  podrun kustomize overlays/production
  podrun kustomize overlays/production -o all.yaml
`,
		Flags: []cli.Flag{
			cmdutil.AllowRemoteFlag(),
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to this `FILE`"},
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &options{env: env} }),
	}
}

// options are the command line of kustomize.
type options struct {
	env    *cmdutil.Env
	words  []string
	output string
}

// Complete reads the command line.
func (o *options) Complete(c *cli.Context) error {
	o.words, o.output, o.env.AllowRemote = c.Args().Slice(), c.String("output"), c.Bool("allow-remote")
	return nil
}

// Validate checks the options.
func (o *options) Validate() error {
	if len(o.words) > 1 {
		return cmdutil.UsageErrorf("kustomize", "specify one path to a kustomization directory")
	}
	return nil
}

// Run prints the objects.
func (o *options) Run(context.Context) error {
	dir := "."
	if len(o.words) == 1 {
		dir = o.words[0]
	}
	text, err := kustomize.Build(o.env, dir)
	if err != nil {
		return err
	}
	if o.output == "" {
		return o.env.WriteSafe(text)
	}
	if err := os.WriteFile(o.output, text, 0o666); err != nil { //nolint:gosec // the umask decides, as for kubectl kustomize -o
		return fmt.Errorf("write the objects: %w", err)
	}
	return nil
}
