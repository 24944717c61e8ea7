// Package top has the command top.
package top

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/kindnames"
	"github.com/podrun/podrun/cli/internal/podstats"
	"github.com/podrun/podrun/cli/internal/tty"
	"github.com/podrun/podrun/internal/sleep"
)

const (
	topWindow   = 500 * time.Millisecond // the interval of the two samples of a single output
	minInterval = 200 * time.Millisecond
)

// NewCommand returns the command top.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "top",
		Usage:     "show what pods use",
		ArgsUsage: "[POD...]",
		Description: `Shows what running pods use, and their limits: processors in thousandths over
half a second, memory (the working set, as the kubelet has it), processes with
their threads, bytes read from and written to disks, and for how much of the
last 10 s something waited for processor, memory or disk (PSI, in percent).
What the kernel does not tell is shown as "-".

With -w it goes on: on a terminal it shows the latest, elsewhere line after
line.

Examples:
  podrun top
  podrun top web --containers
  podrun top -A -w --sort-by memory
  podrun top web -o json
`,
		Flags: []cli.Flag{
			cmdutil.NamespaceFlag(),
			&cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "show the pods of all namespaces"},
			&cli.BoolFlag{Name: "containers", Usage: "show what each container uses"},
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "go on showing what is used"},
			&cli.BoolFlag{Name: "no-stream", Usage: "show what is used once, as without -w"},
			&cli.DurationFlag{Name: "interval", Value: podstats.TopInterval, Usage: "with -w: show it anew after each `DURATION`"},
			&cli.StringFlag{Name: "sort-by", Usage: "sort by this `COLUMN`, the highest first: cpu or memory (default: by name)"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "print in this `FORMAT`: json"},
		},
		Action: func(c *cli.Context) error { return run(env, c) },
	}
}

func run(env *cmdutil.Env, c *cli.Context) error {
	v := &podstats.View{
		Env: env, Words: c.Args().Slice(), Namespace: c.String("namespace"), AllNamespaces: c.Bool("all-namespaces"),
		Containers: c.Bool("containers"), By: c.String("sort-by"), Format: c.String("output"), Reported: map[string]bool{},
	}
	if about, names := kindnames.ParsePods(v.Words); about {
		v.Words = names // kubectl's forms: top pods, top pod NAME
	}
	interval := c.Duration("interval")
	switch {
	case !slices.Contains([]string{"", "json"}, v.Format):
		return cmdutil.UsageErrorf("top", "unknown output format %q: it is json", v.Format)
	case !slices.Contains([]string{"", "cpu", "memory"}, v.By):
		return cmdutil.UsageErrorf("top", "unknown column %q to sort by: it is cpu or memory", v.By)
	case v.AllNamespaces && len(v.Words) > 0:
		return cmdutil.UsageErrorf("top", "a pod cannot be named across all namespaces")
	case c.Bool("no-stream") && c.Bool("watch"):
		return cmdutil.UsageErrorf("top", "-w goes on, --no-stream does not: it is either")
	case c.IsSet("interval") && !c.Bool("watch"):
		return cmdutil.UsageErrorf("top", "--interval is for -w")
	case interval < minInterval:
		return cmdutil.UsageErrorf("top", "--interval is %v or more", minInterval)
	}
	var err error
	if v.Dirs, err = env.Dirs(); err != nil {
		return err
	}
	if c.Bool("watch") {
		return env.UntilInterrupted(c.Context, func(ctx context.Context) error { return watch(v, ctx, interval) })
	}
	before, err := v.Sample()
	if err != nil {
		return err
	}
	if len(before) > 0 {
		if err := sleep.For(c.Context, topWindow); err != nil {
			return err
		}
	}
	after, err := v.Sample()
	if err != nil {
		return err
	}
	return print(v, v.Rates(before, after))
}

// watch prints usage until the user ends it, or the named pods have ended.
func watch(v *podstats.View, ctx context.Context, interval time.Duration) error {
	before, err := v.Sample()
	if err != nil {
		return err
	}
	screen, terminal := tty.File(v.Env.Out)
	terminal = terminal && v.Env.Getenv("TERM") != "dumb"
	for wait := topWindow; ; wait = interval {
		if sleep.For(ctx, wait) != nil {
			return nil
		}
		after, err := v.Sample()
		if err != nil {
			return err
		}
		uses := v.Rates(before, after)
		before = after
		switch {
		case v.Format == "json":
			err = printJSON(v, uses, false)
		case terminal:
			cols, rows := tty.Size(screen)
			_, err = fmt.Fprint(v.Env.Out, "\x1b[H\x1b[J", fitting(table(v, uses, true), cols, rows))
		default:
			err = printLines(v, uses, time.Now())
		}
		if err != nil {
			return err
		}
	}
}
