package systemd

import (
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/unit"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/systemd"
)

// stopPostCommand returns the command for ExecStopPost= of podrun's units.
func stopPostCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:  "stop-post",
		Usage: "for units: stop pods left by a killed main process",
		Description: `systemd runs it after the unit's main process has ended. It ends the pods of a
unit whose stop was requested or timed out: at a shutdown they keep their files
and are resumed later, otherwise they are removed. Pods of a unit that crashed
keep running: the next start of the unit takes them over.

Examples:
  podrun systemd stop-post
`,
		Action: cmdutil.Action(func() cmdutil.Command { return &stopPostOptions{env: env} }),
	}
}

type stopPostOptions struct{ env *cmdutil.Env }

func (o *stopPostOptions) Complete(*cli.Context) error { return nil }
func (o *stopPostOptions) Validate() error             { return nil }

func (o *stopPostOptions) Run(ctx context.Context) error {
	env := o.env
	unitValue, ok := systemd.OwnUnit()
	if !ok {
		return report.New(report.Usage, "podrun down stops pods", "stop-post requires a systemd unit: this process belongs to none")
	}
	dirs, err := env.Dirs()
	if err != nil {
		return err
	}
	pods, err := dirs.UnitPods(unitValue.Name)
	if err != nil || len(pods) == 0 {
		return err
	}
	launcher, err := env.Deps.NewLauncher(dirs)
	if err != nil {
		return err
	}
	s := unit.NewMainProcess(env, dirs, launcher, systemd.NewNotifier(env.Getenv))
	s.Quiet = true
	for _, place := range pods {
		t := &podup.Target{Pod: place}
		if t.Plan, err = place.Plan(); err == nil {
			s.Pods = append(s.Pods, t)
		}
	}
	killNow := make(chan struct{})
	switch result := env.Getenv("SERVICE_RESULT"); {
	case result == "timeout": // the time for the stop is over
		close(killNow)
	case unit.StopRequested(ctx, env, unitValue):
	case result == "watchdog":
		return s.ReplaceUnresponsive(ctx)
	default:
		return nil
	}
	end := s.StopPod
	if s.ShuttingDown(ctx) {
		end = s.ShutdownPod
	}
	errs := make([]error, len(s.Pods))
	podup.ForEach(s.Pods, func(i int, t *podup.Target) { errs[i] = end(ctx, t, killNow) })
	return errors.Join(append(errs, s.ForgetPods())...)
}
