package podaction

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/follow"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/build"
	"github.com/podrun/podrun/internal/store"
)

// NewStartCommand returns the command start.
func NewStartCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "start",
		Usage:     "run ended pods again",
		ArgsUsage: "POD...",
		Description: `Runs pods that have ended, or that were stopped, as podrun up -d with their
manifests does: from the beginning, with empty volumes except claims. A pod
whose processes are gone, as after a power cut, is resumed. A running pod is not
changed.

Examples:
  podrun start web
  podrun start web --wait --timeout 2m
`,
		Flags:  append([]cli.Flag{cmdutil.NamespaceFlag()}, waitFlags()...),
		Action: cmdutil.Action(func() cmdutil.Command { return &startOptions{podOptions: podOptions{env: env}} }),
	}
}

type startOptions struct {
	podOptions
	waitOptions
}

func (o *startOptions) Complete(c *cli.Context) error {
	o.waitOptions.complete(c)
	return o.podOptions.Complete(c)
}

func (o *startOptions) Validate() error {
	if len(o.words) == 0 {
		return cmdutil.UsageErrorf("start", "start requires the names of pods")
	}
	return o.waitOptions.validate()
}

func (o *startOptions) Run(ctx context.Context) (err error) {
	if o.dirs, err = o.env.Preflight(ctx, false); err != nil {
		return err
	}
	pods, missing := o.unownedPods("start")
	if len(pods) == 0 {
		return missing
	}
	o.warnOfUnits(pods)
	signals, stop := o.env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return errors.Join(missing, o.startAgain(ctx, pods, signals))
}

// startAgain starts pods from their stored manifests.
func (o *startOptions) startAgain(ctx context.Context, pods []store.Pod, signals <-chan os.Signal) error {
	launcher, err := o.env.Deps.NewLauncher(o.dirs)
	if err != nil {
		return err
	}
	l := &podup.Run{Env: o.env, Dirs: o.dirs, Launcher: launcher, ReportTo: o.env.ErrOut}
	defer l.Release()
	for _, p := range pods {
		text, err := p.Manifest()
		if err != nil {
			return err
		}
		var objects []manifest.Object
		if text, err = build.RemoveEphemeralContainers(text); err == nil {
			objects, err = manifest.Load("pod "+p.Name, text)
		}
		if err != nil {
			return fmt.Errorf("read manifest of pod %s: %w", p.Name, err)
		}
		l.Targets = append(l.Targets, &podup.Target{Object: &objects[0], Pod: p})
	}
	if err := cmdutil.Interruptible(ctx, signals, func(ctx context.Context) error {
		if err := l.AwaitEnds(ctx); err != nil {
			return err
		}
		return l.Prepare(ctx)
	}); err != nil {
		return err
	}
	return errors.Join(l.Start(), follow.AwaitPods(ctx, o.env, l.Started(), o.goal, o.timeout, signals))
}
