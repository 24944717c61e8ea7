package podaction

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
)

// NewPauseCommand returns the command pause.
func NewPauseCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "pause",
		Usage:     "freeze the processes of pods",
		ArgsUsage: "POD...",
		Description: `Freezes every process of the pods' containers until podrun unpause: they use no
processor time and do not respond. Their memory is kept.

A paused pod is not ready, so Services use other pods. Its probes and hooks do
not run, and results of running ones are ignored; no container is started or
restarted, and grace periods are suspended. activeDeadlineSeconds continues.
podrun stop and podrun down end a paused pod like any other: they unfreeze it
first, so that it receives the stop signal. After a reboot, or in a new sandbox,
the pod is not paused.

This requires a cgroup of the pod's own: podrun doctor shows how to get one.

Examples:
  podrun pause web
  podrun pause deployment/web
`,
		Flags:  []cli.Flag{cmdutil.NamespaceFlag()},
		Action: cmdutil.Action(func() cmdutil.Command { return newPauseOptions(env, true) }),
	}
}

// NewUnpauseCommand returns the command unpause.
func NewUnpauseCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "unpause",
		Usage:     "unfreeze paused pods",
		ArgsUsage: "POD...",
		Description: `Unfreezes the processes of paused pods; they continue where they were.

Examples:
  podrun unpause web
`,
		Flags:  []cli.Flag{cmdutil.NamespaceFlag()},
		Action: cmdutil.Action(func() cmdutil.Command { return newPauseOptions(env, false) }),
	}
}

type pauseOptions struct {
	podOptions
	paused     bool   // or unpaused
	verb, done string // pause, paused
}

func newPauseOptions(env *cmdutil.Env, paused bool) *pauseOptions {
	o := &pauseOptions{podOptions: podOptions{env: env}, paused: paused, verb: "unpause", done: "unpaused"}
	if paused {
		o.verb, o.done = "pause", "paused"
	}
	return o
}

func (o *pauseOptions) Validate() error {
	if len(o.words) == 0 {
		return cmdutil.UsageErrorf(o.verb, "%s requires the names of pods", o.verb)
	}
	return nil
}

func (o *pauseOptions) Run(ctx context.Context) error {
	return o.forEachPod(o.verb, func(p store.Pod) (string, error) {
		st, err := podview.StatusOf(p)
		switch is := err == nil && st.Reason == pod.ReasonPaused; {
		case err != nil:
			return "", err
		case st.Phase.Terminal():
			return "", podclient.ErrNotRunning
		case is && o.paused:
			return "is already paused", nil
		case !is && !o.paused:
			return "is not paused", nil
		}
		return o.done, podclient.Request(ctx, p, wire.Request{Verb: wire.Pause, Pause: &wire.PauseRequest{Paused: o.paused}})
	})
}
