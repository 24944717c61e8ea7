// Package convert has the command convert.
package convert

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/compose"
	"github.com/podrun/podrun/internal/manifest/compose/api"
)

// NewCommand returns the command convert.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "convert",
		Usage:     "print compose files as Kubernetes YAML",
		ArgsUsage: "[FILE]...",
		Description: `Reads compose files as docker compose does, and prints the Kubernetes objects
that podrun up would run for them: a Pod and a Service for each service, claims,
ConfigMaps and Secrets. Several files are merged, in their order. Without a file
it reads compose.yaml, compose.yml, docker-compose.yml or docker-compose.yaml,
and its override file.

An attribute that has no counterpart in Kubernetes is an error, with its line;
one without effect is a warning. The values of secrets are in the output.

podrun up, apply, diff, validate and down -f take compose files, too.

Examples:
  podrun convert
  podrun convert compose.yaml > pods.yaml
  podrun convert -f compose.yaml -f compose.prod.yaml --profile debug
`,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "file", Aliases: []string{"f"}, Usage: "convert this `FILE` (- is standard input)"},
			&cli.StringSliceFlag{Name: "profile", Usage: "include the services of this `PROFILE` ($COMPOSE_PROFILES if not given)"},
			&cli.StringSliceFlag{Name: "env-file", Usage: "read variables for ${VARIABLE} from this `FILE`, not from .env"},
			&cli.StringFlag{Name: "project-name", Aliases: []string{"p"}, Usage: "the `NAME` of the project ($COMPOSE_PROJECT_NAME, name in the file, or the directory's if not given)"},
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &options{env: env} }),
	}
}

// options are the options of convert.
type options struct {
	env     *cmdutil.Env
	request api.Request
}

// Complete reads the command line.
func (o *options) Complete(c *cli.Context) error {
	o.request = api.Request{
		Files: append(c.StringSlice("file"), c.Args().Slice()...), Profiles: c.StringSlice("profile"),
		EnvFiles: c.StringSlice("env-file"), Project: c.String("project-name"),
	}
	return nil
}

// Validate does nothing: the converter checks the values.
func (o *options) Validate() error { return nil }

// Run prints the manifest.
func (o *options) Run(context.Context) error {
	result, err := compose.Convert(o.env, o.request)
	compose.Warn(o.env, result.Warnings)
	if err != nil {
		return err
	}
	return o.env.WriteSafe([]byte(result.Manifest))
}
