// Package events has the command events.
package events

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/podevents"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/manifest/printers"
	"github.com/podrun/podrun/internal/report"
)

// NewCommand returns the command events.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "events",
		Usage:     "show the events of pods",
		ArgsUsage: "[POD...]",
		Description: `Shows the events of pods, the latest last, with the kubelet's reasons: images
pulled, containers started, killed, backing off, out of memory, a pod evicted.
Repeated events are counted. podrun keeps up to 100 different events of a pod
while the pod exists, until a reboot.

With -w it keeps showing new events; events of named pods until the pods are
removed.

Examples:
  podrun events
  podrun events web -w
  podrun events -A --types Warning
  podrun events --for deployment/web
  podrun events web -o yaml
`,
		Flags: []cli.Flag{
			cmdutil.NamespaceFlag(),
			&cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "show the events of all namespaces"},
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "keep showing new events"},
			&cli.StringFlag{Name: "for", Usage: "show only events of this `KIND/NAME`: a pod, or a workload with its pods"},
			&cli.StringFlag{Name: "types", Usage: "show only events of these `TYPES`: Normal, Warning"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "print in this `FORMAT`: wide, json or yaml"},
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &options{View: podevents.View{Env: env}} }),
	}
}

// options are the command line of events.
type options struct {
	podevents.View
	watch  bool
	format string // "", wide, json or yaml

	table  podview.Table
	headed bool // the header was printed
}

// Complete implements cmdutil.Command.
func (o *options) Complete(c *cli.Context) error {
	o.Words, o.Namespace, o.AllNamespaces = c.Args().Slice(), c.String("namespace"), c.Bool("all-namespaces")
	o.watch, o.format = c.Bool("watch"), c.String("output")
	if c.IsSet("for") {
		kind, name, slashed := strings.Cut(c.String("for"), "/")
		kinds := kindnames.Lookup(kind)
		switch {
		case !slashed || name == "":
			return cmdutil.UsageErrorf("events", "--for must be in resource/name form, such as pod/web, not %q", c.String("for"))
		case len(o.Words) > 0:
			return cmdutil.UsageErrorf("events", "--for cannot be combined with names of pods")
		case len(kinds) != 1:
			return cmp.Or(kindnames.UnsupportedError(kind), kindnames.UnknownError(kind))
		case kinds[0] != "" && !kindnames.IsWorkload(kinds[0]):
			return report.New(report.Usage, "podrun describe "+c.String("for")+" shows it", "%s has no events: pods have events, and workloads show the events of their pods", c.String("for"))
		}
		o.Words = []string{c.String("for")}
	}
	if c.IsSet("types") {
		o.Types = strings.Split(c.String("types"), ",")
	}
	return nil
}

// Validate implements cmdutil.Command.
func (o *options) Validate() error {
	switch {
	case !slices.Contains([]string{"", "wide", "json", "yaml"}, o.format):
		return cmdutil.UsageErrorf("events", "unknown output format %q: use wide, json or yaml", o.format)
	case o.AllNamespaces && len(o.Words) > 0:
		return cmdutil.UsageErrorf("events", "a resource cannot be retrieved by name across all namespaces")
	}
	for _, t := range o.Types {
		if !strings.EqualFold(t, corev1.EventTypeNormal) && !strings.EqualFold(t, corev1.EventTypeWarning) {
			return cmdutil.UsageErrorf("events", "unknown event type %q: use Normal or Warning", t)
		}
	}
	return nil
}

// Run implements cmdutil.Command.
func (o *options) Run(ctx context.Context) (err error) {
	if o.Dirs, err = o.Env.Dirs(); err != nil {
		return err
	}
	pods, err := o.Pods()
	if err != nil {
		return err
	}
	if o.watch {
		return o.Env.UntilInterrupted(ctx, func(ctx context.Context) error { return o.follow(ctx, pods) })
	}
	all, err := o.Read(pods)
	if err != nil {
		return err
	}
	return o.printAll(all)
}

func (o *options) printAll(all []corev1.Event) error {
	if o.format == "json" || o.format == "yaml" {
		text, err := printers.PrintEvents(all, printers.Format(o.format))
		if err != nil {
			return err
		}
		return o.Env.WriteSafe(text)
	}
	if len(all) == 0 {
		where := ""
		if len(o.Words) == 0 && !o.AllNamespaces {
			where = " in " + o.Namespace + " namespace."
		}
		fmt.Fprintln(o.Env.ErrOut, "No events found"+where)
		return nil
	}
	return o.printRows(all)
}

// printRows prints rows of the table; the first call prints the header too.
func (o *options) printRows(events []corev1.Event) error {
	var rows [][]string
	if !o.headed {
		head := []string{"LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"}
		if o.format == "wide" {
			head = []string{"LAST SEEN", "TYPE", "REASON", "OBJECT", "SUBOBJECT", "SOURCE", "MESSAGE", "FIRST SEEN", "COUNT", "NAME"}
		}
		if o.AllNamespaces {
			head = append([]string{"NAMESPACE"}, head...)
		}
		rows, o.headed = append(rows, head), true
	}
	now := time.Now()
	for i := range events {
		r := printers.EventRow(&events[i], now)
		row := []string{r.LastSeen, r.Type, r.Reason, r.Object, r.Message}
		if o.format == "wide" {
			object := events[i].InvolvedObject
			row = []string{r.LastSeen, r.Type, r.Reason, object.Kind + "/" + object.Name, r.Subobject, r.Source, r.Message, r.FirstSeen, r.Count, r.Name}
		}
		if o.AllNamespaces {
			row = append([]string{events[i].Namespace}, row...)
		}
		rows = append(rows, row)
	}
	return o.table.Print(o.Env.Out, rows)
}
