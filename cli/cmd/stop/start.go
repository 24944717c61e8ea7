package stop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/podup"
	"github.com/podrun/podrun/cli/internal/rollout"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/manifest/build"
)

// NewStartCommand returns the command start.
func NewStartCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "start",
		Usage:     "run pods anew that have ended",
		ArgsUsage: "POD...",
		Description: `Runs pods that have ended, or that were stopped, as podrun up -d with the
manifests that they were made from would: anew, with empty volumes but for
claims. A pod that was lost, with the machine or without, goes on. One that runs
is left as it is.

Examples:
  podrun start web
  podrun start web --wait --timeout 2m
`,
		Flags:  append([]cli.Flag{cmdutil.NamespaceFlag()}, waitFlags()...),
		Action: func(c *cli.Context) error { return runStart(env, c) },
	}
}

func waitFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "wait", Usage: "return when the pods are ready, not as soon as they run"},
		&cli.DurationFlag{Name: "timeout", Usage: "give up waiting after this `DURATION` (90s, 5m); the pods are left as they are"},
	}
}

func runStart(env *cmdutil.Env, c *cli.Context) error {
	switch {
	case !c.Args().Present():
		return cmdutil.UsageErrorf("start", "start takes the names of pods")
	case c.Duration("timeout") < 0:
		return cmdutil.UsageErrorf("start", "--timeout must not be negative")
	}
	dirs, err := env.Preflight(c.Context, false)
	if err != nil {
		return err
	}
	places, missing := unownedPods(env, dirs, c.String("namespace"), c.Args().Slice(), "start")
	if len(places) == 0 {
		return missing
	}
	warnOfUnits(env, dirs, places)
	signals, quiet := env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer quiet()
	return errors.Join(missing, startAgain(c.Context, env, dirs, places, rollout.GoalFor(c.Bool("wait")), c.Duration("timeout"), signals))
}

// startAgain starts pods from their stored manifests.
func startAgain(ctx context.Context, env *cmdutil.Env, dirs store.Dirs, places []store.Pod, to rollout.Goal, timeout time.Duration, signals <-chan os.Signal) error {
	launcher, err := env.Deps.NewLauncher(dirs)
	if err != nil {
		return err
	}
	l := &podup.Run{Env: env, Dirs: dirs, Launcher: launcher, ReportTo: env.ErrOut}
	defer l.Release()
	for _, p := range places {
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
	if err := cmdutil.Interruptible(ctx, signals, l.Prepare); err != nil {
		return err
	}
	return errors.Join(l.Start(), rollout.AwaitPods(ctx, env, l.Started(), to, timeout, signals))
}
