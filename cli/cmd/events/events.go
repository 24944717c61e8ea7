// Package events has the command events.
package events

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/podevents"
	"github.com/podrun/podrun/manifest/printers"
)

// NewCommand returns the command events.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "events",
		Usage:     "show what has happened to pods",
		ArgsUsage: "[POD...]",
		Description: `Shows the events of pods, the latest last, with the kubelet's reasons: images
pulled, containers started, killed, backing off, out of memory, a pod evicted.
What repeats is counted. Events are kept while the pod is there, up to 100
different ones, and not over a reboot.

With -w it goes on showing what happens; of pods that are named, until they are
removed.

Examples:
  podrun events
  podrun events web -w
  podrun events -A --types Warning
  podrun events web -o yaml
`,
		Flags: []cli.Flag{
			cmdutil.NamespaceFlag(),
			&cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "show the events of all namespaces"},
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "go on showing what happens"},
			&cli.StringFlag{Name: "types", Usage: "show only events of these `TYPES`: Normal, Warning"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "print in this `FORMAT`: wide, json or yaml"},
		},
		Action: func(c *cli.Context) error { return run(env, c) },
	}
}

func run(env *cmdutil.Env, c *cli.Context) error {
	v := &podevents.View{Env: env, Words: c.Args().Slice(), Namespace: c.String("namespace"), AllNamespaces: c.Bool("all-namespaces"), Format: c.String("output")}
	switch {
	case !slices.Contains([]string{"", "wide", "json", "yaml"}, v.Format):
		return cmdutil.UsageErrorf("events", "unknown output format %q: it is wide, json or yaml", v.Format)
	case v.AllNamespaces && len(v.Words) > 0:
		return cmdutil.UsageErrorf("events", "a pod cannot be named across all namespaces")
	}
	if c.IsSet("types") {
		for _, t := range strings.Split(c.String("types"), ",") {
			if !strings.EqualFold(t, corev1.EventTypeNormal) && !strings.EqualFold(t, corev1.EventTypeWarning) {
				return cmdutil.UsageErrorf("events", "unknown type of events %q: it is Normal or Warning", t)
			}
			v.Types = append(v.Types, strings.ToLower(t))
		}
	}
	var err error
	if v.Dirs, err = env.Dirs(); err != nil {
		return err
	}
	places, err := v.Pods()
	if err != nil {
		return err
	}
	if c.Bool("watch") {
		return env.UntilInterrupted(c.Context, func(ctx context.Context) error { return watch(v, ctx, places) })
	}
	all, err := v.Read(places)
	if err != nil {
		return err
	}
	return printAll(v, all)
}

func printAll(v *podevents.View, all []corev1.Event) error {
	if v.Format == "json" || v.Format == "yaml" {
		text, err := printers.PrintEvents(all, printers.Format(v.Format))
		if err != nil {
			return err
		}
		err = v.Env.WriteSafe(text)
		return err
	}
	if len(all) == 0 {
		switch {
		case len(v.Words) > 0:
			fmt.Fprintln(v.Env.ErrOut, "No events found")
		case v.AllNamespaces:
			fmt.Fprintln(v.Env.ErrOut, "No events found")
		default:
			fmt.Fprintf(v.Env.ErrOut, "No events found in %s namespace.\n", v.Namespace)
		}
		return nil
	}
	return printRows(v, all)
}

// printRows prints rows of the table; the first call prints the header too.
func printRows(v *podevents.View, events []corev1.Event) error {
	var rows [][]string
	if !v.Headed {
		head := []string{"LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"}
		if v.Format == "wide" {
			head = []string{"LAST SEEN", "TYPE", "REASON", "OBJECT", "SUBOBJECT", "SOURCE", "MESSAGE", "FIRST SEEN", "COUNT", "NAME"}
		}
		if v.AllNamespaces {
			head = append([]string{"NAMESPACE"}, head...)
		}
		rows, v.Headed = append(rows, head), true
	}
	now := time.Now()
	for i := range events {
		r := printers.EventRow(&events[i], now)
		row := []string{r.LastSeen, r.Type, r.Reason, r.Object, r.Message}
		if v.Format == "wide" {
			object := events[i].InvolvedObject
			row = []string{r.LastSeen, r.Type, r.Reason, object.Kind + "/" + object.Name, r.Subobject, r.Source, r.Message, r.FirstSeen, r.Count, r.Name}
		}
		if v.AllNamespaces {
			row = append([]string{events[i].Namespace}, row...)
		}
		rows = append(rows, row)
	}
	return v.Sheet.Print(v.Env.Out, rows)
}
