// Package describe has the command describe.
package describe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/controller"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/podevents"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/describe"
	"github.com/podrun/podrun/internal/manifest/printers"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
)

// NewCommand returns the command describe.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "describe",
		Usage:     "show the details of pods and objects",
		ArgsUsage: "POD... | KIND [NAME...] | KIND/NAME...",
		Description: `Shows what kubectl describe shows. For a pod: each container with its
configuration, the results of its runs, what it waits for; conditions, volumes
and events. A section about this machine precedes the events: the network mode,
the cgroup, warnings.

For Secrets it shows the sizes of values, never the values.

Examples:
  podrun describe web
  podrun describe pods -n shop
  podrun describe deployment/web
  podrun describe services
  podrun describe cm settings
`,
		Flags: []cli.Flag{
			cmdutil.NamespaceFlag(),
			&cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "describe the objects of all namespaces"},
			&cli.StringFlag{Name: "selector", Aliases: []string{"l"}, Usage: "describe only objects with the labels of this `SELECTOR`: app=web,tier!=db"},
			&cli.BoolFlag{Name: "show-events", Value: true, Usage: "also show events, which pods and workloads have"},
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &options{View: podevents.View{Env: env}} }),
	}
}

// options are the command line of describe.
type options struct {
	podevents.View
	queries     []kindnames.Query
	hasSelector bool
	labels      printers.Selector
	showEvents  bool

	printed int // the number of pages
}

// Complete implements cmdutil.Command.
func (o *options) Complete(c *cli.Context) (err error) {
	if !c.Args().Present() {
		return cmdutil.UsageErrorf("describe", "describe requires a kind, such as pods or deployments, or the names of pods")
	}
	o.Namespace, o.AllNamespaces, o.showEvents = c.String("namespace"), c.Bool("all-namespaces"), c.Bool("show-events")
	if o.queries, err = resource.ParseQueries(o.Env, o.Namespace, c.Args().Slice()); err != nil {
		return err
	}
	o.hasSelector = c.IsSet("selector")
	if o.labels, err = printers.ParseSelector(c.String("selector")); err != nil {
		return cmdutil.UsageErrorf("describe", "--selector cannot be %q: %v", c.String("selector"), err)
	}
	return nil
}

// Validate implements cmdutil.Command.
func (o *options) Validate() error {
	named := slices.ContainsFunc(o.queries, func(q kindnames.Query) bool { return len(q.Names) > 0 })
	switch {
	case o.AllNamespaces && named:
		return cmdutil.UsageErrorf("describe", "a resource cannot be retrieved by name across all namespaces")
	case o.hasSelector && named:
		return cmdutil.UsageErrorf("describe", "name cannot be provided when a selector is specified")
	}
	return nil
}

// Run prints pages, one after the other.
func (o *options) Run(context.Context) (err error) {
	if o.Dirs, err = o.Env.Dirs(); err != nil {
		return err
	}
	controller.FinishInterrupted(o.Env, o.Dirs)
	var errs []error
	for _, q := range o.queries {
		if q.Kind == "" {
			errs = append(errs, o.pods(q.Names))
		} else {
			errs = append(errs, o.objects(q))
		}
	}
	if o.printed == 0 && errors.Join(errs...) == nil {
		fmt.Fprintln(o.Env.ErrOut, podview.NoResources(o.Namespace, o.AllNamespaces))
	}
	return errors.Join(errs...)
}

func (o *options) print(text string) error {
	if o.printed++; o.printed > 1 {
		text = "\n\n" + text
	}
	_, err := io.WriteString(o.Env.Out, text)
	return err
}

func (o *options) pods(words []string) error {
	o.Words = words
	pods, err := o.Pods()
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range pods {
		text, labels, err := o.podPage(p)
		switch {
		case err != nil && (len(words) > 0 || p.Exists()): // else it was removed meanwhile
			errs = append(errs, err)
		case err == nil && o.labels.Matches(labels):
			errs = append(errs, o.print(text))
		}
	}
	return errors.Join(errs...)
}

// podPage returns the page of one pod, and its labels.
func (o *options) podPage(p store.Pod) (string, map[string]string, error) {
	k, err := resource.LoadPod(p)
	if err != nil {
		return "", nil, err
	}
	plan, err := p.Plan()
	if err != nil {
		return "", nil, err
	}
	happened, err := o.Read([]store.Pod{p})
	if err != nil {
		return "", nil, err
	}
	rendered := manifest.Render(k.Manifest, k.Status)
	now := time.Now()
	if o.showEvents {
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
			if len(c.Devices) > 0 {
				lines = append(lines, describe.Field{Name: "Devices", Value: c.Name + ": " + strings.Join(c.Devices, ", ")})
			}
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
		return "auto (masquerade for root, else tproxy, else netstack)"
	case pod.NetworkMasquerade:
		return "masquerade (the kernel forwards packets)"
	case pod.NetworkTProxy:
		if st.NetworkWhy != "" {
			return "tproxy (the kernel forwards connections; no masquerade: " + st.NetworkWhy + ")"
		}
		return "tproxy (the kernel forwards connections)"
	case pod.NetworkNetstack:
		return "netstack (a user-space network stack forwards connections)"
	}
	return string(mode)
}
