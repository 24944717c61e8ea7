package image

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/template"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/imagegc"
	"github.com/podrun/podrun/internal/cli/internal/printers"
	"github.com/podrun/podrun/internal/cli/internal/progress"
)

// NewLsCommand returns the command image ls.
func NewLsCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:  "ls",
		Usage: "list the images on this machine",
		Description: `Lists the images, the last one added first. SIZE is the size of all layers;
images share layers. TEMPLATE is a Go template, as with docker and
podman, with the fields Name, Repository, Tag, ID, Digest, CreatedAt,
CreatedSince and Size; json writes these as a line for each name.

Examples:
  podrun image ls
  podrun image ls -q
  podrun image ls --format '{{.Repository}}:{{.Tag}} {{.Size}}'
`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print only the ids, each once"},
			&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "accepted for compatibility: all images are always listed"},
			&cli.StringFlag{Name: "format", Usage: "print each name by this `TEMPLATE`, or as json"},
		},
		Action: func(c *cli.Context) error { return runLs(env, c) },
	}
}

func runLs(env *cmdutil.Env, c *cli.Context) error {
	if c.Args().Present() {
		return cmdutil.UsageErrorf("image ls", "image ls accepts no arguments")
	}
	s, err := env.ImageStore()
	if err != nil {
		return err
	}
	list, err := s.List()
	now := time.Now()
	switch format := c.String("format"); {
	case c.Bool("quiet"):
		for _, i := range list {
			fmt.Fprintln(env.Out, printers.ShortImageID(i.ID))
		}
	case format != "" && format != "table":
		err = errors.Join(formatImages(env, list, now, format), err)
	default:
		err = errors.Join(printImages(env, list, now), err)
	}
	return err
}

// listedImage is one name of an image, with the fields of docker's templates.
type listedImage struct {
	Name, Repository, Tag, ID, Digest, CreatedAt, CreatedSince, Size string
}

// formatImages prints each name with a template.
func formatImages(env *cmdutil.Env, list []image.Info, now time.Time, format string) error {
	if format == "json" {
		format = "{{json .}}"
	}
	t, err := template.New("").Funcs(template.FuncMap{"json": func(v any) (string, error) {
		text, err := json.Marshal(v)
		return string(text), err
	}}).Parse(format)
	if err != nil {
		return cmdutil.UsageErrorf("image ls", "--format: %v", err)
	}
	for _, i := range list {
		for _, name := range printers.ImageNames(i) {
			repository, tag := splitName(name)
			row := listedImage{Name: name, Repository: repository, Tag: tag, ID: printers.ShortImageID(i.ID), Digest: i.Digest, Size: progress.Size(i.Size)}
			if !i.Created.IsZero() {
				row.CreatedAt, row.CreatedSince = i.Created.Format(time.RFC3339), printers.Ago(i.Created, now)
			}
			var line strings.Builder
			if err := t.Execute(&line, row); err != nil {
				return cmdutil.UsageErrorf("image ls", "--format: %v", err)
			}
			fmt.Fprintln(env.Out, line.String())
		}
	}
	return nil
}

// splitName splits a full name into repository and tag.
func splitName(name string) (repository, tag string) {
	repository, _, digested := strings.Cut(name, "@")
	if index := strings.LastIndex(name, ":"); !digested && index > strings.LastIndex(name, "/") {
		return name[:index], name[index+1:]
	}
	return repository, printers.NoImageName
}

func printImages(env *cmdutil.Env, list []image.Info, now time.Time) error {
	rows := [][]string{printers.ImageHeader()}
	for _, i := range list {
		rows = append(rows, printers.ImageRows(i, now)...)
	}
	return env.PrintTable(rows)
}

// NewRmCommand returns the command image rm.
func NewRmCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "rm",
		Usage:     "remove images",
		ArgsUsage: "IMAGE...",
		Description: `Removes the given names. An image is removed when its last name is. Layers that
a pod still uses stay; the first image rm or image prune after the pod is
removed frees them.

Examples:
  podrun image rm busybox:1.36
  podrun image rm 4a1b6c
`,
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return cmdutil.UsageErrorf("image rm", "image rm requires the names or ids of images")
			}
			dirs, err := env.Dirs()
			if err != nil {
				return err
			}
			s, err := cmdutil.OpenImages(dirs)
			if err != nil {
				return err
			}
			var errs []error
			for _, word := range c.Args().Slice() {
				u := imagegc.NewInUse(env, dirs)
				errs = append(errs, s.Remove(word, image.RemoveOptions{InUse: u.Layer}), u.Err)
			}
			return errors.Join(errs...)
		},
	}
}
