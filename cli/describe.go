package cli

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/reading"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/manifest/describe"
	"github.com/podrun/podrun/manifest/printers"
	"github.com/podrun/podrun/pod"
)

func (f *front) describeCommand() *cli.Command {
	return &cli.Command{
		Name:      "describe",
		Usage:     "tell all that is known of things, for people",
		ArgsUsage: "POD... | KIND [NAME...] | KIND/NAME...",
		Description: `Tells of pods and other things what kubectl describe tells. Of a pod: what each
container is and was told to do, how its runs ended, what it waits for, its
conditions, volumes and events. What only this machine knows comes before the
events: how the pod reaches the network, its cgroup, what was warned of.

Of secrets it shows the sizes of values, never the values.

Examples:
  podrun describe web
  podrun describe pods -n shop
  podrun describe deployment/web
  podrun describe services
  podrun describe cm settings
`,
		Flags: []cli.Flag{
			namespaceFlag(),
			&cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "tell of what is in all namespaces"},
			&cli.StringFlag{Name: "selector", Aliases: []string{"l"}, Usage: "tell only of what has the labels of this `SELECTOR`: app=web,tier!=db"},
			&cli.BoolFlag{Name: "show-events", Value: true, Usage: "tell the events of each thing too; podrun keeps those of pods"},
		},
		Action: f.describe,
	}
}

func (f *front) describe(c *cli.Context) error {
	words := c.Args().Slice()
	if len(words) == 0 {
		return usageErrorf("describe", "describe takes a kind, such as pods or deployments, or the names of pods")
	}
	what, err := f.asked(c, words)
	if err != nil {
		return err
	}
	named := false
	for _, a := range what {
		named = named || len(a.names) > 0
	}
	switch {
	case c.Bool("all-namespaces") && named:
		return usageErrorf("describe", "nothing can be named across all namespaces")
	case c.IsSet("selector") && named:
		return usageErrorf("describe", "--selector chooses what is told of: it does not go with names")
	}
	d := &describing{front: f, namespace: c.String("namespace"), all: c.Bool("all-namespaces"), events: c.Bool("show-events")}
	if d.labels, err = printers.ParseSelector(c.String("selector")); err != nil {
		return usageErrorf("describe", "--selector cannot be %q: %v", c.String("selector"), err)
	}
	if d.dirs, err = f.dirs(); err != nil {
		return err
	}
	f.revive(d.dirs)
	var errs []error
	for _, a := range what {
		if a.kind == "" {
			errs = append(errs, d.pods(a.names))
		} else {
			errs = append(errs, d.objects(a))
		}
	}
	if d.told == 0 && errors.Join(errs...) == nil {
		fmt.Fprintln(f.err, reading.Empty(d.namespace, d.all))
	}
	return errors.Join(errs...)
}

// describing writes pages, one below the other.
type describing struct {
	front     *front
	dirs      store.Dirs
	namespace string
	all       bool
	events    bool
	labels    printers.Selector
	told      int
}

func (d *describing) tell(text string) error {
	if d.told++; d.told > 1 {
		text = "\n\n" + text
	}
	_, err := io.WriteString(d.front.out, text)
	return err
}

func (d *describing) pods(words []string) error {
	v := &eventView{front: d.front, dirs: d.dirs, words: words, namespace: d.namespace, allNamespaces: d.all}
	places, err := v.places()
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range places {
		text, labels, err := v.page(p, d.events)
		switch {
		case err != nil && (len(words) > 0 || p.Exists()): // else it has gone meanwhile
			errs = append(errs, err)
		case err == nil && d.labels.Matches(labels):
			errs = append(errs, d.tell(text))
		}
	}
	return errors.Join(errs...)
}

// page is what is told of one pod, and its labels.
func (v *eventView) page(p store.Pod, events bool) (string, map[string]string, error) {
	k, err := know(p)
	if err != nil {
		return "", nil, err
	}
	plan, err := p.Plan()
	if err != nil {
		return "", nil, err
	}
	happened, err := v.read([]store.Pod{p})
	if err != nil {
		return "", nil, err
	}
	rendered := manifest.Render(k.manifest, k.status)
	now := time.Now()
	if events {
		return describe.Pod(rendered, happened, ofMachine(p, plan, k.status), now), rendered.Labels, nil
	}
	return describe.PodWithoutEvents(rendered, ofMachine(p, plan, k.status), now), rendered.Labels, nil
}

// ofMachine is what no cluster would know of a pod.
func ofMachine(p store.Pod, plan *pod.Plan, st *pod.Status) []describe.Field {
	lines := []describe.Field{{Name: "Network", Value: networkWords(plan, st)}}
	if st.Cgroup != "" {
		lines = append(lines, describe.Field{Name: "Cgroup", Value: st.Cgroup})
	}
	lines = append(lines, describe.Field{Name: "Kept In", Value: p.DataDir()})
	for _, list := range plan.All() {
		for _, c := range list {
			if c.Label != "" {
				lines = append(lines, describe.Field{Name: "SELinux", Value: c.Name + ": " + c.Label})
			}
		}
	}
	for _, w := range st.Warnings {
		lines = append(lines, describe.Field{Name: "Warning", Value: w})
	}
	return lines
}

// networkWords says how a pod reaches the network, or is asked to.
func networkWords(plan *pod.Plan, st *pod.Status) string {
	mode := plan.Network
	if st.Network != "" {
		mode = st.Network
	}
	switch mode {
	case pod.NetworkAuto:
		return "auto (masquerade for root, or tproxy, or netstack where the kernel cannot)"
	case pod.NetworkMasquerade:
		return "masquerade (the kernel leads packets out)"
	case pod.NetworkTProxy:
		if st.NetworkWhy != "" {
			return "tproxy (the kernel carries connections; no masquerade: " + st.NetworkWhy + ")"
		}
		return "tproxy (the kernel carries connections)"
	case pod.NetworkNetstack:
		return "netstack (a network stack in user space carries them)"
	}
	return string(mode)
}
