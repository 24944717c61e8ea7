// Package top has the command top.
package top

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/podstats"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/cli/internal/tty"
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
		Usage:     "show the resource usage of pods",
		ArgsUsage: "[POD...]",
		Description: `Shows the resource usage of running pods, and their limits: CPU in millicores
(average of 0.5 s), memory (the working set, as the kubelet computes it),
processes with their threads, bytes read from and written to disks, and the
share of the last 10 s in which processes waited for CPU, memory or disk (PSI,
in percent). "-" stands for values that the kernel does not provide.

With -w it repeats: on a terminal it replaces the table, elsewhere it appends
lines.

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
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "keep showing usage"},
			&cli.BoolFlag{Name: "no-stream", Usage: "show usage once, as without -w"},
			&cli.DurationFlag{Name: "interval", Value: podstats.TopInterval, Usage: "with -w: update after each `DURATION`"},
			&cli.StringFlag{Name: "sort-by", Usage: "sort by this `COLUMN`, the highest first: cpu or memory (default: by name)"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "print in this `FORMAT`: json"},
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &options{View: podstats.View{Env: env}} }),
	}
}

// options are the command line of top.
type options struct {
	podstats.View
	containers  bool
	format      string // "" or json
	watch       bool
	once        bool
	interval    time.Duration
	hasInterval bool

	printer podview.Table
	headed  bool // the header was printed
}

// Complete implements cmdutil.Command.
func (o *options) Complete(c *cli.Context) error {
	o.Words, o.Namespace, o.AllNamespaces, o.By = c.Args().Slice(), c.String("namespace"), c.Bool("all-namespaces"), c.String("sort-by")
	if about, names := kindnames.ParsePods(o.Words); about {
		o.Words = names // kubectl's forms: top pods, top pod NAME
	}
	o.containers, o.format = c.Bool("containers"), c.String("output")
	o.watch, o.once, o.interval, o.hasInterval = c.Bool("watch"), c.Bool("no-stream"), c.Duration("interval"), c.IsSet("interval")
	return nil
}

// Validate implements cmdutil.Command.
func (o *options) Validate() error {
	switch {
	case !slices.Contains([]string{"", "json"}, o.format):
		return cmdutil.UsageErrorf("top", "unknown output format %q: use json", o.format)
	case !slices.Contains([]string{"", "cpu", "memory"}, o.By):
		return cmdutil.UsageErrorf("top", "unknown column %q to sort by: use cpu or memory", o.By)
	case o.AllNamespaces && len(o.Words) > 0:
		return cmdutil.UsageErrorf("top", "a resource cannot be retrieved by name across all namespaces")
	case o.once && o.watch:
		return cmdutil.UsageErrorf("top", "--watch and --no-stream are mutually exclusive")
	case o.hasInterval && !o.watch:
		return cmdutil.UsageErrorf("top", "--interval requires -w")
	case o.interval < minInterval:
		return cmdutil.UsageErrorf("top", "--interval must be at least %v", minInterval)
	}
	return nil
}

// Run implements cmdutil.Command.
func (o *options) Run(ctx context.Context) (err error) {
	if o.Dirs, err = o.Env.Dirs(); err != nil {
		return err
	}
	if o.watch {
		return o.Env.UntilInterrupted(ctx, o.printChanges)
	}
	before, err := o.Sample()
	if err != nil {
		return err
	}
	if len(before) > 0 {
		if err := sleep.For(ctx, topWindow); err != nil {
			return err
		}
	}
	after, err := o.Sample()
	if err != nil {
		return err
	}
	return o.print(o.Rates(before, after))
}

// printChanges prints usage until the user ends it, or the named pods have ended.
func (o *options) printChanges(ctx context.Context) error {
	before, err := o.Sample()
	if err != nil {
		return err
	}
	screen, terminal := tty.File(o.Env.Out)
	terminal = terminal && o.Env.Getenv("TERM") != "dumb"
	for wait := topWindow; ; wait = o.interval {
		if sleep.For(ctx, wait) != nil {
			return nil
		}
		after, err := o.Sample()
		if err != nil {
			return err
		}
		uses := o.Rates(before, after)
		before = after
		switch {
		case o.format == "json":
			err = o.printJSON(uses, false)
		case terminal:
			cols, rows := tty.Size(screen)
			_, err = fmt.Fprint(o.Env.Out, "\x1b[H\x1b[J", fitting(o.table(uses, true), cols, rows))
		default:
			err = o.printLines(uses, time.Now())
		}
		if err != nil {
			return err
		}
	}
}
