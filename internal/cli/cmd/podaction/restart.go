package podaction

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/progress"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// NewRestartCommand returns the command restart.
func NewRestartCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "restart",
		Usage:     "restart the containers of pods",
		ArgsUsage: "POD... [-c CONTAINER] | -l SELECTOR | --all",
		Description: `Stops the app containers and sidecars of pods gracefully, all at once, and
starts them again, whatever the restart policy and without back-off. The pod
stays: its volumes, address and init containers are not affected. A pod that has
ended is started, as by podrun start; --selector and --all select running pods.

Examples:
  podrun restart web
  podrun restart -l app=web
  podrun restart web -c app --grace-period 1
  podrun restart web --wait --timeout 2m
`,
		Flags: append(append([]cli.Flag{
			cmdutil.NamespaceFlag(),
			&cli.StringSliceFlag{Name: "container", Aliases: []string{"c"}, Usage: "restart only this `CONTAINER`"},
			gracePeriodFlag(),
		}, resource.SelectionFlags("the pods")...), waitFlags()...),
		Action: cmdutil.Action(func() cmdutil.Command {
			return &restartOptions{startOptions: startOptions{podOptions: podOptions{env: env}}}
		}),
	}
}

type restartOptions struct {
	startOptions          // for pods that have ended
	only         []string // containers; nil: all
	graceOptions graceOptions
}

func (o *restartOptions) Complete(c *cli.Context) error {
	o.only = c.StringSlice("container")
	o.graceOptions.complete(c)
	return o.startOptions.Complete(c)
}

func (o *restartOptions) Validate() error {
	switch {
	case o.chosen == nil && len(o.words) == 0:
		return cmdutil.UsageErrorf("restart", "restart requires the names of pods, --selector or --all")
	case len(o.only) > 0 && (len(o.words) > 1 || o.chosen != nil):
		return cmdutil.UsageErrorf("restart", "--container requires exactly one pod")
	}
	return errors.Join(o.waitOptions.validate(), o.graceOptions.validate())
}

func (o *restartOptions) Run(ctx context.Context) (err error) {
	if o.dirs, err = o.env.Preflight(ctx, false); err != nil {
		return err
	}
	living, ended, missing := o.pods()
	errs := []error{missing}
	if len(ended) > 0 && len(o.only) > 0 {
		return report.New(report.Failure, "podrun start "+ended[0].Name+" runs it again", "pod %s has ended: there is no container to restart", ended[0].Name)
	}
	signals, stop := o.env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if len(ended) > 0 {
		errs = append(errs, o.startAgain(ctx, ended, signals))
	}
	errs = append(errs, cmdutil.Interruptible(ctx, signals, func(ctx context.Context) error {
		ctx, cancel := cmdutil.WithTimeout(ctx, o.timeout)
		defer cancel()
		failed, names := make([]error, len(living)), make([]string, len(living))
		shown := progress.New(o.env, "")
		var all sync.WaitGroup
		for i, p := range living {
			names[i] = p.Name
			all.Go(func() { failed[i] = o.restartPod(ctx, shown, p) })
		}
		shown.Wait("waiting for pod %s to be %s", strings.Join(names, ", "), o.goal.Word)
		all.Wait()
		shown.End()
		for i, p := range living {
			if failed[i] == nil {
				fmt.Fprintf(o.env.Out, "pod/%s restarted\n", p.Name)
			}
		}
		return errors.Join(failed...)
	}))
	return errors.Join(errs...)
}

// pods returns the pods to restart, running or ended, and an error about missing ones.
func (o *restartOptions) pods() (living, ended []store.Pod, err error) {
	if o.chosen != nil {
		if living, err = o.chosen.Running(o.env, o.dirs, "restart", true); len(living) == 0 && err == nil {
			o.chosen.ReportEmpty(o.env)
		}
		return living, nil, err
	}
	list, err := o.existingPods()
	for _, p := range list {
		if p.Alive() {
			living = append(living, p)
		} else {
			ended = append(ended, p)
		}
	}
	return living, ended, err
}

// restartPod restarts containers of a pod, and waits until they reach the requested state. It reports to out which containers are still to be stopped.
func (o *restartOptions) restartPod(ctx context.Context, out io.Writer, place store.Pod) error {
	t, err := podup.Restart(ctx, place, o.only, o.graceOptions.grace)
	if err != nil {
		return err
	}
	defer podclient.ReportWaiting(out, "restarting", place, nil, func(c pod.ContainerStatus) bool {
		before, restarting := t.RestartCounts[c.Name]
		return restarting && c.State.Running != nil && c.RestartCount <= before
	})()
	last, err := podclient.Follow(ctx, place, func(st *pod.Status) bool {
		return o.goal.Reached(st) && t.RestartsDone(st) || st.Phase.Terminal()
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return report.New(report.Failure, fmt.Sprintf("podrun events %[1]s and podrun logs %[1]s show why", place.Name), "pod %s did not become %s within the timeout: it keeps running", place.Name, o.goal.Word)
	case err != nil:
		return err
	case last != nil && last.Phase == pod.Failed:
		return report.New(report.Failure, "podrun describe "+place.Name+" shows why", "pod %s failed", place.Name)
	}
	return nil
}
