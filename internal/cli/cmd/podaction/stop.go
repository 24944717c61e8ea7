// Package podaction has the commands that stop, start and remove pods that exist: stop, start, restart,
// down, kill, pause and unpause.
package podaction

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/workloads"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// NewStopCommand returns the command stop.
func NewStopCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "stop",
		Usage:     "stop pods, and keep their status and logs",
		ArgsUsage: "POD... | -l SELECTOR | --all",
		Description: `Stops pods gracefully (stop signal, grace period, SIGKILL). Their status, events
and logs stay. podrun start runs them again, podrun down removes them.
--selector and --all select running pods, without pods of Deployments, Jobs and
other workloads.

Examples:
  podrun stop web
  podrun stop -l app=web
  podrun stop web --grace-period 5
  podrun stop web --force
`,
		Flags:  append(append([]cli.Flag{cmdutil.NamespaceFlag()}, resource.SelectionFlags("the pods")...), graceFlags()...),
		Action: cmdutil.Action(func() cmdutil.Command { return &stopOptions{podOptions: podOptions{env: env}} }),
	}
}

type stopOptions struct {
	podOptions
	graceOptions
}

func (o *stopOptions) Complete(c *cli.Context) error {
	o.graceOptions.complete(c)
	return o.podOptions.Complete(c)
}

func (o *stopOptions) Validate() error {
	if o.chosen == nil && len(o.words) == 0 {
		return cmdutil.UsageErrorf("stop", "stop requires the names of pods, --selector or --all")
	}
	return o.graceOptions.validate()
}

func (o *stopOptions) Run(ctx context.Context) (err error) {
	if o.dirs, err = o.env.Dirs(); err != nil {
		return err
	}
	pods, missing := o.unownedPods("stop")
	if o.chosen != nil {
		if pods, missing = o.chosen.Running(o.env, o.dirs, "stop", false); len(pods) == 0 && missing == nil {
			o.chosen.ReportEmpty(o.env)
		}
	}
	o.warnOfUnits(pods)
	errs := make([]error, len(pods))
	var all sync.WaitGroup
	for i, p := range pods {
		all.Go(func() {
			if errs[i] = podinit.EndStrays(o.dirs, p, o.env.ErrOut); errs[i] == nil {
				errs[i] = podclient.Stop(ctx, p, o.how(o.env))
			}
		})
	}
	all.Wait()
	for i, p := range pods {
		if errs[i] == nil {
			fmt.Fprintf(o.env.Out, "pod/%s stopped\n", p.Name)
		}
	}
	return errors.Join(append(errs, missing)...)
}

// unownedPods returns the pods that the words name. It rejects pods of workloads, which would be replaced by
// new ones.
func (o *podOptions) unownedPods(verb string) ([]store.Pod, error) {
	var pods []store.Pod
	var errs []error
	for _, word := range o.words {
		if kind, _, known := kindnames.ParseObjects([]string{word}); known && kindnames.IsWorkload(kind) && strings.Contains(word, "/") {
			errs = append(errs, report.New(report.Failure, "podrun down "+word+" removes it with its pods; to keep it without them apply it with replicas: 0 or suspend: true", "cannot %s %s: it controls its pods", verb, word))
			continue
		}
		p, err := resource.ExistingPod(o.dirs, o.namespace, word)
		if err == nil {
			err = refuseOwned(p, verb)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		pods = append(pods, p)
	}
	return resource.UniquePods(pods), errors.Join(errs...)
}

func refuseOwned(p store.Pod, verb string) error {
	text, err := p.Manifest()
	if err != nil {
		return err
	}
	m, err := manifest.Unmarshal(text)
	if err != nil {
		return fmt.Errorf("read manifest of pod %s: %w", p.Name, err)
	}
	if by := workloads.ControllerOf(m); by != nil {
		owner := kindnames.Of(by.Owner.Kind) + "/" + by.Owner.Name
		return report.New(report.Failure, "podrun down "+owner+" removes it with its pods; podrun down "+p.Name+" replaces the pod", "cannot %s pod %s: it is controlled by %s", verb, p.Name, owner)
	}
	return nil
}
