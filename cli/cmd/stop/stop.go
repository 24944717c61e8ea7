// Package stop has the commands that stop, start and remove pods that exist: stop, start, restart,
// down, kill, pause and unpause.
package stop

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/kindnames"
	"github.com/podrun/podrun/cli/internal/podclient"
	"github.com/podrun/podrun/cli/internal/podstop"
	"github.com/podrun/podrun/cli/internal/resource"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/manifest/workloads"
)

// NewStopCommand returns the command stop.
func NewStopCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "stop",
		Usage:     "stop pods and keep what they leave",
		ArgsUsage: "POD... | -l SELECTOR | --all",
		Description: `Stops pods gracefully (stop signal, grace period, SIGKILL). What they leave
stays to be looked at: status, events, logs. podrun start runs them anew, podrun
down removes them. --selector and --all choose pods that run, without those of
deployments, jobs and the like.

Examples:
  podrun stop web
  podrun stop -l app=web
  podrun stop web --grace-period 5
  podrun stop web --force
`,
		Flags:  append(append([]cli.Flag{cmdutil.NamespaceFlag()}, resource.SelectionFlags("the pods")...), stopFlags()...),
		Action: func(c *cli.Context) error { return runStop(env, c) },
	}
}

func runStop(env *cmdutil.Env, c *cli.Context) error {
	how, err := stopOptionsOf(c)
	if err != nil {
		return err
	}
	chosen, err := resource.SelectionOf(c, c.Args().Present())
	if err != nil {
		return err
	}
	if chosen == nil && !c.Args().Present() {
		return cmdutil.UsageErrorf("stop", "stop takes the names of pods, --selector or --all")
	}
	dirs, err := env.Dirs()
	if err != nil {
		return err
	}
	places, missing := unownedPods(env, dirs, c.String("namespace"), c.Args().Slice(), "stop")
	if chosen != nil {
		if places, missing = chosen.Running(env, dirs, "stop", false); len(places) == 0 && missing == nil {
			chosen.ReportEmpty(env)
		}
	}
	warnOfUnits(env, dirs, places)
	errs := make([]error, len(places))
	var all sync.WaitGroup
	for i, p := range places {
		all.Go(func() {
			defer podclient.ReportWaiting(env.ErrOut, "stopping", p, how.Grace, nil)()
			if errs[i] = podstop.StopOrKill(c.Context, env.ErrOut, p, how); errs[i] == nil {
				errs[i] = podclient.WaitGone(c.Context, p)
			}
		})
	}
	all.Wait()
	for i, p := range places {
		if errs[i] == nil {
			fmt.Fprintf(env.Out, "pod/%s stopped\n", p.Name)
		}
	}
	return errors.Join(append(errs, missing)...)
}

// unownedPods returns the pods that words name. It rejects pods of workloads, which would be replaced by
// new ones.
func unownedPods(env *cmdutil.Env, dirs store.Dirs, namespace string, words []string, verb string) ([]store.Pod, error) {
	var places []store.Pod
	var errs []error
	for _, word := range words {
		if kind, _, known := kindnames.ParseObjects([]string{word}); known && kindnames.IsWorkload(kind) && strings.Contains(word, "/") {
			errs = append(errs, report.New(report.Failure, "podrun down "+word+" removes it with its pods; to keep it without them apply it with replicas: 0 or suspend: true", "cannot %s %s: it makes its pods by itself", verb, word))
			continue
		}
		p, err := resource.ExistingPod(dirs, namespace, word)
		if err == nil {
			err = refuseOwned(p, verb)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		places = append(places, p)
	}
	return resource.UniquePods(places), errors.Join(errs...)
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
		return report.New(report.Failure, "podrun down "+owner+" ends it with its pods; podrun down "+p.Name+" has another pod made", "cannot %s pod %s: %s makes it", verb, p.Name, owner)
	}
	return nil
}
