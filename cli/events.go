package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/cli/internal/reading"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/manifest/printers"
	manifeststatus "github.com/podrun/podrun/manifest/status"
)

func (f *front) eventsCommand() *cli.Command {
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
			namespaceFlag(),
			&cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "show the events of all namespaces"},
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "go on showing what happens"},
			&cli.StringFlag{Name: "types", Usage: "show only events of these `TYPES`: Normal, Warning"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "print in this `FORMAT`: wide, json or yaml"},
		},
		Action: f.events,
	}
}

// eventView is what of the events is shown, and how.
type eventView struct {
	front         *front
	dirs          store.Dirs
	words         []string // the pods that were named
	namespace     string
	allNamespaces bool
	types         []string
	format        string
	sheet         reading.Sheet
	headed        bool
}

func (f *front) events(c *cli.Context) error {
	v := &eventView{front: f, words: c.Args().Slice(), namespace: c.String("namespace"), allNamespaces: c.Bool("all-namespaces"), format: c.String("output")}
	switch {
	case !slices.Contains([]string{"", "wide", "json", "yaml"}, v.format):
		return usageErrorf("events", "unknown output format %q: it is wide, json or yaml", v.format)
	case v.allNamespaces && len(v.words) > 0:
		return usageErrorf("events", "a pod cannot be named across all namespaces")
	}
	if c.IsSet("types") {
		for _, t := range strings.Split(c.String("types"), ",") {
			if !strings.EqualFold(t, corev1.EventTypeNormal) && !strings.EqualFold(t, corev1.EventTypeWarning) {
				return usageErrorf("events", "unknown type of events %q: it is Normal or Warning", t)
			}
			v.types = append(v.types, strings.ToLower(t))
		}
	}
	var err error
	if v.dirs, err = f.dirs(); err != nil {
		return err
	}
	places, err := v.places()
	if err != nil {
		return err
	}
	if c.Bool("watch") {
		return f.untilInterrupted(c.Context, func(ctx context.Context) error { return v.watch(ctx, places) })
	}
	all, err := v.read(places)
	if err != nil {
		return err
	}
	return v.printAll(all)
}

// places are the pods whose events are shown.
func (v *eventView) places() ([]store.Pod, error) {
	if len(v.words) == 0 {
		return listed(v.dirs, v.namespace, v.allNamespaces)
	}
	var places []store.Pod
	words, err := v.front.podsOf(v.dirs, v.namespace, v.words, false)
	if err != nil {
		return nil, err
	}
	for _, word := range words {
		p, err := existing(v.dirs, v.namespace, word)
		if err != nil {
			return nil, err
		}
		places = append(places, p)
	}
	return places, nil
}

// read gives the events there are, the latest last. Pods that go meanwhile have none.
func (v *eventView) read(places []store.Pod) ([]corev1.Event, error) {
	var all []corev1.Event
	for _, p := range places {
		events, err := p.Events()
		if err != nil {
			return nil, err
		}
		if len(events) == 0 {
			continue
		}
		text, err := p.Manifest()
		if err != nil {
			if !p.Exists() {
				continue
			}
			return nil, err
		}
		m, err := manifest.Unmarshal(text)
		if err != nil {
			return nil, fmt.Errorf("read manifest of pod %s: %w", p.Name, err)
		}
		all = append(all, manifeststatus.Events(m, events)...)
	}
	all = slices.DeleteFunc(all, func(e corev1.Event) bool {
		return v.types != nil && !slices.Contains(v.types, strings.ToLower(e.Type))
	})
	slices.SortStableFunc(all, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	return all, nil
}

func (v *eventView) printAll(all []corev1.Event) error {
	if v.format == "json" || v.format == "yaml" {
		text, err := printers.PrintEvents(all, printers.Format(v.format))
		if err != nil {
			return err
		}
		err = v.front.show(text)
		return err
	}
	if len(all) == 0 {
		switch {
		case len(v.words) > 0:
			fmt.Fprintln(v.front.err, "No events found")
		case v.allNamespaces:
			fmt.Fprintln(v.front.err, "No events found")
		default:
			fmt.Fprintf(v.front.err, "No events found in %s namespace.\n", v.namespace)
		}
		return nil
	}
	return v.printRows(all)
}

// printRows prints lines of the table, the first time under its head.
func (v *eventView) printRows(events []corev1.Event) error {
	var rows [][]string
	if !v.headed {
		head := []string{"LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"}
		if v.format == "wide" {
			head = []string{"LAST SEEN", "TYPE", "REASON", "OBJECT", "SUBOBJECT", "SOURCE", "MESSAGE", "FIRST SEEN", "COUNT", "NAME"}
		}
		if v.allNamespaces {
			head = append([]string{"NAMESPACE"}, head...)
		}
		rows, v.headed = append(rows, head), true
	}
	now := time.Now()
	for i := range events {
		r := printers.EventRow(&events[i], now)
		row := []string{r.LastSeen, r.Type, r.Reason, r.Object, r.Message}
		if v.format == "wide" {
			object := events[i].InvolvedObject
			row = []string{r.LastSeen, r.Type, r.Reason, object.Kind + "/" + object.Name, r.Subobject, r.Source, r.Message, r.FirstSeen, r.Count, r.Name}
		}
		if v.allNamespaces {
			row = append([]string{events[i].Namespace}, row...)
		}
		rows = append(rows, row)
	}
	return v.sheet.Print(v.front.out, rows)
}
