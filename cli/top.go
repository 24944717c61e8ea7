package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/reading"
	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/cli/internal/tty"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

const (
	topWindow   = 500 * time.Millisecond // over which the use of processors is told, of one look
	topInterval = 2 * time.Second
	minInterval = 200 * time.Millisecond
)

func (f *front) topCommand() *cli.Command {
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
			namespaceFlag(),
			&cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "show the pods of all namespaces"},
			&cli.BoolFlag{Name: "containers", Usage: "show what each container uses"},
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "go on showing what is used"},
			&cli.BoolFlag{Name: "no-stream", Usage: "show what is used once, as without -w"},
			&cli.DurationFlag{Name: "interval", Value: topInterval, Usage: "with -w: show it anew after each `DURATION`"},
			&cli.StringFlag{Name: "sort-by", Usage: "sort by this `COLUMN`, the highest first: cpu or memory (default: by name)"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "print in this `FORMAT`: json"},
		},
		Action: f.top,
	}
}

// topView is what of the use is shown, and how.
type topView struct {
	front         *front
	dirs          store.Dirs
	words         []string
	namespace     string
	allNamespaces bool
	containers    bool
	by            string
	format        string
	said          map[string]bool // remarks, each once
	sheet         reading.Sheet
	headed        bool
}

func (f *front) top(c *cli.Context) error {
	v := &topView{
		front: f, words: c.Args().Slice(), namespace: c.String("namespace"), allNamespaces: c.Bool("all-namespaces"),
		containers: c.Bool("containers"), by: c.String("sort-by"), format: c.String("output"), said: map[string]bool{},
	}
	if about, names := podWords(v.words); about {
		v.words = names // kubectl's: top pods, top pod NAME
	}
	interval := c.Duration("interval")
	switch {
	case !slices.Contains([]string{"", "json"}, v.format):
		return usageErrorf("top", "unknown output format %q: it is json", v.format)
	case !slices.Contains([]string{"", "cpu", "memory"}, v.by):
		return usageErrorf("top", "unknown column %q to sort by: it is cpu or memory", v.by)
	case v.allNamespaces && len(v.words) > 0:
		return usageErrorf("top", "a pod cannot be named across all namespaces")
	case c.Bool("no-stream") && c.Bool("watch"):
		return usageErrorf("top", "-w goes on, --no-stream does not: it is either")
	case c.IsSet("interval") && !c.Bool("watch"):
		return usageErrorf("top", "--interval is for -w")
	case interval < minInterval:
		return usageErrorf("top", "--interval is %v or more", minInterval)
	}
	var err error
	if v.dirs, err = f.dirs(); err != nil {
		return err
	}
	if c.Bool("watch") {
		return f.untilInterrupted(c.Context, func(ctx context.Context) error { return v.watch(ctx, interval) })
	}
	before, err := v.look()
	if err != nil {
		return err
	}
	if len(before) > 0 {
		if err := remote.Pause(c.Context, topWindow); err != nil {
			return err
		}
	}
	after, err := v.look()
	if err != nil {
		return err
	}
	return v.print(v.rates(before, after))
}

// places are the pods to look at. Of those that are not named only the running ones
// count.
func (v *topView) places() ([]store.Pod, error) {
	if len(v.words) == 0 {
		all, err := listed(v.dirs, v.namespace, v.allNamespaces)
		return slices.DeleteFunc(all, func(p store.Pod) bool { return !p.Alive() }), err
	}
	var places []store.Pod
	for _, word := range v.words {
		p, err := existing(v.dirs, v.namespace, word)
		if err != nil {
			return nil, err
		}
		if !p.Alive() {
			return nil, report.New(report.Failure, "podrun ps lists the pods", "pod %s is not running: it uses nothing", p.Name)
		}
		places = append(places, p)
	}
	return places, nil
}

// watch shows what is used until the user has seen enough, or the pods that were
// named have ended.
func (v *topView) watch(ctx context.Context, interval time.Duration) error {
	before, err := v.look()
	if err != nil {
		return err
	}
	screen, terminal := tty.File(v.front.out)
	terminal = terminal && v.front.getenv("TERM") != "dumb"
	for wait := topWindow; ; wait = interval {
		if remote.Pause(ctx, wait) != nil {
			return nil
		}
		after, err := v.look()
		if err != nil {
			return err
		}
		uses := v.rates(before, after)
		before = after
		switch {
		case v.format == "json":
			err = v.printJSON(uses, false)
		case terminal:
			cols, rows := tty.Size(screen)
			_, err = fmt.Fprint(v.front.out, "\x1b[H\x1b[J", fitting(v.table(uses, true), cols, rows))
		default:
			err = v.printLines(uses, time.Now())
		}
		if err != nil {
			return err
		}
	}
}
