package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/manifest/build"
)

func (f *front) startCommand() *cli.Command {
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
		Flags:  append([]cli.Flag{namespaceFlag()}, arrivalFlags()...),
		Action: f.startPods,
	}
}

func arrivalFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "wait", Usage: "return when the pods are ready, not as soon as they run"},
		&cli.DurationFlag{Name: "timeout", Usage: "give up waiting after this `DURATION` (90s, 5m); the pods are left as they are"},
	}
}

func (f *front) startPods(c *cli.Context) error {
	switch {
	case !c.Args().Present():
		return usageErrorf("start", "start takes the names of pods")
	case c.Duration("timeout") < 0:
		return usageErrorf("start", "--timeout must not be negative")
	}
	dirs, err := f.able(c.Context, false)
	if err != nil {
		return err
	}
	places, missing := f.ownPlaces(dirs, c.String("namespace"), c.Args().Slice(), "start")
	if len(places) == 0 {
		return missing
	}
	f.warnOfUnits(dirs, places)
	signals, quiet := f.signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer quiet()
	return errors.Join(missing, f.startAgain(c.Context, dirs, places, arrivalOf(c.Bool("wait")), c.Duration("timeout"), signals))
}

// startAgain runs pods of the manifests that they were made from.
func (f *front) startAgain(ctx context.Context, dirs store.Dirs, places []store.Pod, to arrival, timeout time.Duration, signals <-chan os.Signal) error {
	keeper, err := f.rooms.pods(dirs)
	if err != nil {
		return err
	}
	l := &launch{front: f, dirs: dirs, keeper: keeper, said: f.err}
	defer l.release()
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
		l.pods = append(l.pods, &upPod{object: &objects[0], place: p})
	}
	if err := interruptible(ctx, signals, l.prepare); err != nil {
		return err
	}
	return errors.Join(l.start(), f.detach(ctx, l.started(), to, timeout, signals))
}
