// Package build has the command build.
package build

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/imagebuild"
	"github.com/podrun/podrun/internal/manifest/compose/api"
	"github.com/podrun/podrun/internal/report"
)

// NewCommand returns the command build.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "build",
		Usage:     "build an image with the builder that is installed",
		ArgsUsage: "DIRECTORY -t NAME",
		Description: `podrun builds no images itself: it calls the first of buildah, buildctl, docker
and podman that is installed, shows its output, and adds the image. Settings of
the builder, such as BUILDAH_ISOLATION, are passed on in the environment.

Examples:
  podrun build . -t localhost/web
  podrun build . -t web:2 -f Dockerfile.prod --build-arg VERSION=2 --target app
`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "tag", Aliases: []string{"t"}, Usage: "the `NAME` of the image"},
			&cli.StringFlag{Name: "file", Aliases: []string{"f"}, Usage: "the `DOCKERFILE` (Dockerfile in the directory if not given)"},
			&cli.StringSliceFlag{Name: "build-arg", Usage: "set an argument of the Dockerfile, `NAME=VALUE`; NAME alone takes the value from podrun's own environment"},
			&cli.StringFlag{Name: "target", Usage: "build this `STAGE` of the Dockerfile"},
			&cli.BoolFlag{Name: "no-cache", Usage: "use nothing that the builder has kept of earlier builds"},
			cmdutil.BuilderFlag(),
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &options{env: env} }),
	}
}

type options struct {
	env     *cmdutil.Env
	words   []string
	build   api.Build
	args    []string
	options cmdutil.BuildOptions
}

// Complete reads the command line.
func (o *options) Complete(c *cli.Context) error {
	o.words, o.args = c.Args().Slice(), c.StringSlice("build-arg")
	o.build = api.Build{Image: c.String("tag"), Dockerfile: c.String("file"), Target: c.String("target")}
	o.options = cmdutil.BuildOptions{Builder: c.String("builder"), NoCache: c.Bool("no-cache")}
	return nil
}

// Validate checks the command line.
func (o *options) Validate() error {
	switch {
	case len(o.words) != 1:
		return cmdutil.UsageErrorf("build", "build requires one directory")
	case o.build.Image == "":
		return cmdutil.UsageErrorf("build", "build requires -t and the name of the image")
	}
	if err := image.ValidateName(o.build.Image); err != nil {
		return report.New(report.Usage, "", "-t: %w", err)
	}
	o.build.Args = map[string]string{}
	for _, word := range o.args {
		name, value, whole := strings.Cut(word, "=")
		if name == "" {
			return cmdutil.UsageErrorf("build", "--build-arg: %q has no name", word)
		}
		if !whole {
			value = o.env.Getenv(name)
		}
		o.build.Args[name] = value
	}
	return nil
}

// Run builds the image.
func (o *options) Run(ctx context.Context) (err error) {
	if o.build.Context = o.words[0]; !strings.Contains(o.build.Context, "://") {
		if o.build.Context, err = filepath.Abs(o.build.Context); err != nil {
			return err
		}
		if o.build.Dockerfile != "" { // as with docker, -f is relative to the working directory
			if o.build.Dockerfile, err = filepath.Abs(o.build.Dockerfile); err != nil {
				return err
			}
		}
	}
	signals, stop := o.env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err = cmdutil.Interruptible(ctx, signals, func(ctx context.Context) error {
		return imagebuild.Build(ctx, o.env, o.build, o.options)
	})
	if err == nil {
		_, err = fmt.Fprintln(o.env.Out, image.NormalizeName(o.build.Image))
	}
	return err
}
