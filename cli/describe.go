package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/manifest/describe"
	"github.com/podrun/podrun/pod"
)

func (f *front) describeCommand() *cli.Command {
	return &cli.Command{
		Name:      "describe",
		Usage:     "tell all that is known of pods, for people",
		ArgsUsage: "[pod] POD... | pods",
		Description: `Tells of pods what kubectl describe tells: what each container is and was told
to do, how its runs ended, what it waits for, the pod's conditions, volumes and
events. What only this machine knows comes before the events: how the pod
reaches the network, its cgroup, what was warned of.

Of a workload, such as deployment/web, it tells of its pods; of itself tells
podrun get deployment/web -o yaml.

Examples:
  podrun describe web
  podrun describe pods -n shop
  podrun describe deployment/web
`,
		Flags: []cli.Flag{
			namespaceFlag(),
			&cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "tell of the pods of all namespaces"},
			&cli.BoolFlag{Name: "show-events", Value: true, Usage: "tell the events of each pod too"},
		},
		Action: f.describe,
	}
}

func (f *front) describe(c *cli.Context) error {
	words := c.Args().Slice()
	plain := len(words) > 0 && slices.Contains([]string{"pods", "pod", "po"}, words[0])
	if plain {
		words = words[1:]
	}
	switch {
	case !plain && len(words) == 0:
		return usageErrorf("describe", "describe takes `pods`, or the names of pods")
	case c.Bool("all-namespaces") && len(words) > 0:
		return usageErrorf("describe", "a pod cannot be named across all namespaces")
	}
	dirs, err := f.dirs()
	if err != nil {
		return err
	}
	f.revive(dirs)
	v := &eventView{front: f, dirs: dirs, words: words, namespace: c.String("namespace"), allNamespaces: c.Bool("all-namespaces")}
	places, err := v.places()
	if err != nil {
		return err
	}
	if len(places) == 0 {
		fmt.Fprintln(f.err, emptyWords(v.namespace, v.allNamespaces))
		return nil
	}
	var errs []error
	for i, p := range places {
		text, err := v.page(p, c.Bool("show-events"))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if i > 0 {
			text = "\n\n" + text
		}
		if _, err := io.WriteString(f.out, text); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// page is what is told of one pod.
func (v *eventView) page(p store.Pod, events bool) (string, error) {
	k, err := know(p)
	if err != nil {
		return "", err
	}
	plan, err := p.Plan()
	if err != nil {
		return "", err
	}
	happened, err := v.read([]store.Pod{p})
	if err != nil {
		return "", err
	}
	rendered := manifest.Render(k.manifest, k.status)
	now := time.Now()
	if events {
		return describe.Pod(rendered, happened, ofMachine(p, plan, k.status), now), nil
	}
	return describe.PodAlone(rendered, ofMachine(p, plan, k.status), now), nil
}

// ofMachine is what no cluster would know of a pod.
func ofMachine(p store.Pod, plan *pod.Plan, st *pod.Status) []describe.Line {
	lines := []describe.Line{{Name: "Network", Value: networkWords(plan, st)}}
	if st.Cgroup != "" {
		lines = append(lines, describe.Line{Name: "Cgroup", Value: st.Cgroup})
	}
	lines = append(lines, describe.Line{Name: "Kept In", Value: p.DataDir()})
	for _, w := range st.Warnings {
		lines = append(lines, describe.Line{Name: "Warning", Value: w})
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
		return "auto (tproxy, or netstack where the kernel cannot)"
	case pod.NetworkTProxy:
		return "tproxy (the kernel carries connections)"
	case pod.NetworkNetstack:
		return "netstack (a network stack in user space carries them)"
	}
	return string(mode)
}
