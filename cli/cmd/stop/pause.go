package stop

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/podclient"
	"github.com/podrun/podrun/cli/internal/podview"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/pod"
)

// NewPauseCommand returns the command pause.
func NewPauseCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "pause",
		Usage:     "have pods do nothing for a while",
		ArgsUsage: "POD...",
		Description: `Holds every process of the pods' containers where it is: they use no processor
and answer nobody, until podrun unpause. What they have in memory stays.

A paused pod is not ready, so that Services lead to others. Its probes and hooks
are not run, and none counts that was under way; nothing of it is started or
restarted, and the grace of containers that were to end stands still.
activeDeadlineSeconds goes on. podrun stop and podrun down end a paused pod as
any other: it goes on first, to hear of it. A pod that goes on after the machine
was restarted, or in another sandbox, is not paused.

It takes a cgroup of the pod's own: podrun doctor says how to come by one.

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
		Usage:     "let pods go on that were paused",
		ArgsUsage: "POD...",
		Description: `Lets the processes of paused pods go on where they were held.

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
		return cmdutil.UsageErrorf(o.verb, "%s takes the names of pods", o.verb)
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
			return "is paused already", nil
		case !is && !o.paused:
			return "is not paused", nil
		}
		return o.done, podclient.Request(ctx, p, wire.Request{Verb: wire.Pause, Pause: &wire.PauseRequest{Paused: o.paused}})
	})
}
