package image

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/imagegc"
	"github.com/podrun/podrun/internal/cli/internal/progress"
)

func imagePruneCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:  "prune",
		Usage: "remove images that nothing uses",
		Description: `Removes untagged (dangling) images, and with -a all images that no pod uses and
no unit, Deployment, Job or other workload may use. Images for a rollback are
kept. It does not ask for a confirmation.

Examples:
  podrun image prune
  podrun image prune -a
  podrun image prune -a --filter until=24h
`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "also remove tagged images that nothing uses"},
			&cli.StringFlag{Name: "filter", Usage: "with `until=TIME`: only images added before, as a duration (24h) or a time (2026-01-31T12:00:00Z)"},
			&cli.BoolFlag{Name: "force", Aliases: []string{"f"}, Usage: "accepted for compatibility; podrun never prompts"},
		},
		Action: func(c *cli.Context) error { return runPrune(env, c) },
	}
}

func runPrune(env *cmdutil.Env, c *cli.Context) error {
	if c.Args().Present() {
		return cmdutil.UsageErrorf("image prune", "image prune accepts no arguments: podrun image rm removes an image by its name")
	}
	o := image.PruneOptions{All: c.Bool("all")}
	if filter := c.String("filter"); filter != "" {
		until, ok := strings.CutPrefix(filter, "until=")
		if !ok {
			return cmdutil.UsageErrorf("image prune", "--filter must be until=TIME, not %q", filter)
		}
		age, err := time.ParseDuration(until)
		if o.Before = time.Now().Add(-age); err != nil {
			if o.Before, err = time.Parse(time.RFC3339, until); err != nil {
				return cmdutil.UsageErrorf("image prune", "until must be a duration such as 24h or a time such as 2026-01-31T12:00:00Z, not %q", until)
			}
		}
	}
	dirs, err := env.Dirs()
	if err != nil {
		return err
	}
	s, err := env.ImageStore()
	if err != nil {
		return err
	}
	u := imagegc.NewInUse(env, dirs)
	o.Uses = u.Uses()
	gone, err := s.Prune(o)
	for _, i := range gone.Images {
		for _, name := range i.Names {
			fmt.Fprintln(env.Out, name)
		}
		if len(i.Names) == 0 {
			fmt.Fprintln(env.Out, i.ID)
		}
	}
	fmt.Fprintf(env.ErrOut, "podrun: %d images removed, %s freed\n", len(gone.Images), progress.Size(gone.Bytes))
	return errors.Join(err, u.Err)
}
