package image

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/printers"
	"github.com/podrun/podrun/internal/cli/internal/progress"
	manifestprinters "github.com/podrun/podrun/internal/manifest/printers"
)

func imageInspectCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "show the details of images",
		ArgsUsage: "IMAGE...",
		Description: `Shows images as JSON with docker's and podman's fields: Id, RepoTags,
RepoDigests, Config, RootFS, History. Layers has the directory of each unpacked
layer.

Examples:
  podrun image inspect busybox
  podrun image inspect -o yaml web:1.4
  podrun image inspect -o jsonpath='{.Config.Entrypoint}' web:1.4
`,
		Flags: []cli.Flag{&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "json", Usage: "print in this `FORMAT`: json, yaml, jsonpath=TEMPLATE, jsonpath-as-json=TEMPLATE or custom-columns=NAME:PATH,..."}},
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return cmdutil.UsageErrorf("image inspect", "image inspect requires the names of images")
			}
			format := c.String("output")
			print, ok, err := manifestprinters.ParsePrinter(format, false)
			if err != nil || !ok {
				return cmdutil.UsageErrorf("image inspect", "-o must be json, yaml, jsonpath=TEMPLATE, jsonpath-as-json=TEMPLATE or custom-columns=NAME:PATH, not %q", format)
			}
			list := []any{}
			errs := describeEach(env, c.Args().Slice(), func(d *image.Inspection) error {
				list = append(list, d)
				return nil
			})
			if len(list) == 0 && format != "json" {
				return errors.Join(errs...)
			}
			if format == "json" { // always a list, as docker and podman print it
				print = func([]any, bool) ([]byte, error) {
					text, err := json.MarshalIndent(list, "", "    ")
					return append(text, '\n'), err
				}
			}
			text, err := print(list, len(list) == 1)
			if err == nil {
				err = env.WriteSafe(text)
			}
			return errors.Join(append(errs, err)...)
		},
	}
}

// describeEach calls do for each image, and continues after a failure.
func describeEach(env *cmdutil.Env, words []string, do func(*image.Inspection) error) (errs []error) {
	s, err := env.ImageStore()
	if err != nil {
		return []error{err}
	}
	for _, word := range words {
		d, err := s.Inspect(word)
		if err == nil {
			err = do(d)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func imageHistoryCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "history",
		Usage:     "show how an image was built",
		ArgsUsage: "IMAGE",
		Description: `Shows the steps that built an image, the last one first, with the size of each
layer.

Examples:
  podrun image history busybox
  podrun image history --no-trunc web:1.4
`,
		Flags: []cli.Flag{&cli.BoolFlag{Name: "no-trunc", Usage: "show the commands in full"}},
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return cmdutil.UsageErrorf("image history", "image history requires the name of one image")
			}
			return errors.Join(describeEach(env, c.Args().Slice(), func(d *image.Inspection) error {
				return printHistory(env, d, c.Bool("no-trunc"), time.Now())
			})...)
		},
	}
}

func printHistory(env *cmdutil.Env, d *image.Inspection, full bool, now time.Time) error {
	var rows [][]string
	layer := 0
	for _, h := range d.History {
		age, bytes := "", ""
		if h.Created != nil {
			age = printers.Ago(*h.Created, now)
		}
		if !h.EmptyLayer && layer < len(d.Layers) {
			bytes = progress.Size(d.Layers[layer].Size)
			layer++
		}
		by := strings.Join(strings.Fields(h.CreatedBy), " ")
		if r := []rune(by); !full && len(r) > 60 {
			by = string(r[:59]) + "…"
		}
		rows = append([][]string{{age, by, bytes, h.Comment}}, rows...)
	}
	for ; layer < len(d.Layers); layer++ {
		rows = append([][]string{{"", "", progress.Size(d.Layers[layer].Size), ""}}, rows...)
	}
	return env.PrintTable(append([][]string{{"CREATED", "CREATED BY", "SIZE", "COMMENT"}}, rows...))
}

func imageTagCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "tag",
		Usage:     "add names to an image",
		ArgsUsage: "IMAGE NAME...",
		Description: `Adds names to an image. A name of another image is moved to this one. podrun
image rm NAME removes a name.

Examples:
  podrun image tag web:1.4 registry.example.org/team/web:1.4
  podrun image tag 4a1b6c localhost/web:old
`,
		Action: func(c *cli.Context) error {
			if c.NArg() < 2 {
				return cmdutil.UsageErrorf("image tag", "image tag requires an image and its new names")
			}
			s, err := env.ImageStore()
			if err != nil {
				return err
			}
			var errs []error
			for _, name := range c.Args().Tail() {
				errs = append(errs, s.Tag(c.Args().First(), name))
			}
			return errors.Join(errs...)
		},
	}
}
