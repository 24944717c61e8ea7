// Package describe has the command describe.
package describe

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/controller"
	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/podevents"
	"github.com/podrun/podrun/cli/internal/podview"
	"github.com/podrun/podrun/cli/internal/resource"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/manifest/describe"
	"github.com/podrun/podrun/manifest/printers"
	"github.com/podrun/podrun/pod"
)

// NewCommand returns the command describe.
func NewCommand(env *cmdutil.Env) *cli.Command {
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
			cmdutil.NamespaceFlag(),
			&cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "tell of what is in all namespaces"},
			&cli.StringFlag{Name: "selector", Aliases: []string{"l"}, Usage: "tell only of what has the labels of this `SELECTOR`: app=web,tier!=db"},
			&cli.BoolFlag{Name: "show-events", Value: true, Usage: "tell the events of each thing too; podrun keeps those of pods"},
		},
		Action: func(c *cli.Context) error { return run(env, c) },
	}
}

func run(env *cmdutil.Env, c *cli.Context) error {
	words := c.Args().Slice()
	if len(words) == 0 {
		return cmdutil.UsageErrorf("describe", "describe takes a kind, such as pods or deployments, or the names of pods")
	}
	what, err := resource.ParseQueries(env, c.String("namespace"), words)
	if err != nil {
		return err
	}
	named := false
	for _, a := range what {
		named = named || len(a.Names) > 0
	}
	switch {
	case c.Bool("all-namespaces") && named:
		return cmdutil.UsageErrorf("describe", "nothing can be named across all namespaces")
	case c.IsSet("selector") && named:
		return cmdutil.UsageErrorf("describe", "--selector chooses what is told of: it does not go with names")
	}
	d := &describer{env: env, namespace: c.String("namespace"), all: c.Bool("all-namespaces"), events: c.Bool("show-events")}
	if d.labels, err = printers.ParseSelector(c.String("selector")); err != nil {
		return cmdutil.UsageErrorf("describe", "--selector cannot be %q: %v", c.String("selector"), err)
	}
	if d.dirs, err = env.Dirs(); err != nil {
		return err
	}
	controller.Recover(env, d.dirs)
	var errs []error
	for _, a := range what {
		if a.Kind == "" {
			errs = append(errs, d.pods(a.Names))
		} else {
			errs = append(errs, d.objects(a))
		}
	}
	if d.printed == 0 && errors.Join(errs...) == nil {
		fmt.Fprintln(env.ErrOut, podview.NoResources(d.namespace, d.all))
	}
	return errors.Join(errs...)
}

// describer writes pages, one after the other.
type describer struct {
	env       *cmdutil.Env
	dirs      store.Dirs
	namespace string
	all       bool
	events    bool
	labels    printers.Selector
	printed   int
}

func (d *describer) print(text string) error {
	if d.printed++; d.printed > 1 {
		text = "\n\n" + text
	}
	_, err := io.WriteString(d.env.Out, text)
	return err
}

func (d *describer) pods(words []string) error {
	v := &podevents.View{Env: d.env, Dirs: d.dirs, Words: words, Namespace: d.namespace, AllNamespaces: d.all}
	places, err := v.Pods()
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range places {
		text, labels, err := podPage(v, p, d.events)
		switch {
		case err != nil && (len(words) > 0 || p.Exists()): // else it was removed meanwhile
			errs = append(errs, err)
		case err == nil && d.labels.Matches(labels):
			errs = append(errs, d.print(text))
		}
	}
	return errors.Join(errs...)
}

// podPage returns the page of one pod, and its labels.
func podPage(v *podevents.View, p store.Pod, events bool) (string, map[string]string, error) {
	k, err := resource.LoadPod(p)
	if err != nil {
		return "", nil, err
	}
	plan, err := p.Plan()
	if err != nil {
		return "", nil, err
	}
	happened, err := v.Read([]store.Pod{p})
	if err != nil {
		return "", nil, err
	}
	rendered := manifest.Render(k.Manifest, k.Status)
	now := time.Now()
	if events {
		return describe.Pod(rendered, happened, machineLines(p, plan, k.Status), now), rendered.Labels, nil
	}
	return describe.PodWithoutEvents(rendered, machineLines(p, plan, k.Status), now), rendered.Labels, nil
}

// machineLines returns the fields of a pod that Kubernetes does not have.
func machineLines(p store.Pod, plan *pod.Plan, st *pod.Status) []describe.Field {
	lines := []describe.Field{{Name: "Network", Value: networkText(plan, st)}}
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

// networkText returns how a pod reaches the network, or how its manifest requests it.
func networkText(plan *pod.Plan, st *pod.Status) string {
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
