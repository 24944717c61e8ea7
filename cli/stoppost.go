package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/delegation"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/systemd"
)

// stopPostCommand is the ExecStopPost= of podrun's units.
func (f *front) stopPostCommand() *cli.Command {
	return &cli.Command{
		Name:  "stop-post",
		Usage: "for units: end what a killed main process has left",
		Description: `Systemd runs it after the unit's main process has ended, however that was. Pods
of a unit that was told to stop, or that timed out, are ended: with the machine
they keep their files, and go on later, else they are removed. Those of a unit
that only crashed go on running: the unit's next start takes them over.

Examples:
  podrun systemd stop-post
`,
		Action: f.stopPost,
	}
}

// askTime is how long the service manager may take to answer.
const askTime = 5 * time.Second

func (f *front) stopPost(c *cli.Context) error {
	unit, ok := systemd.OwnUnit()
	if !ok {
		return report.New(report.Usage, "podrun down stops pods", "stop-post is for units of systemd, and this process belongs to none")
	}
	dirs, err := f.dirs()
	if err != nil {
		return err
	}
	places, err := dirs.UnitPods(unit.Name)
	if err != nil || len(places) == 0 {
		return err
	}
	keeper, err := f.rooms.pods(dirs)
	if err != nil {
		return err
	}
	s := f.newService(dirs, keeper, systemd.NewNotifier(f.getenv))
	s.quiet = true
	for _, place := range places {
		p := &upPod{place: place}
		if p.plan, err = place.Plan(); err == nil {
			s.pods = append(s.pods, p)
		}
	}
	hurry := make(chan struct{})
	switch result := f.getenv("SERVICE_RESULT"); {
	case result == "timeout": // its patience is at an end
		close(hurry)
	case f.endAsked(c.Context, unit):
	case result == "watchdog":
		return s.killSilent(c.Context)
	default:
		return nil
	}
	end := s.stopOne
	if s.goingDown(c.Context) {
		end = s.suspend
	}
	errs := make([]error, len(s.pods))
	each(s.pods, func(i int, p *upPod) { errs[i] = end(c.Context, p, hurry) })
	return errors.Join(append(errs, s.forget())...)
}

// endAsked says whether the unit is to stop. Where that cannot be known its pods go on.
func (f *front) endAsked(ctx context.Context, unit systemd.Unit) bool {
	manager, ok := delegation.FindManager()
	if !ok {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	asked, err := unit.StopRequested(ctx, manager)
	if err != nil {
		report.Print(f.err, err)
	}
	return asked
}

// killSilent replaces the supervisors that do not answer, for whose sake systemd has ended
// the main process.
func (s *service) killSilent(ctx context.Context) error {
	errs := make([]error, len(s.pods))
	each(s.pods, func(i int, p *upPod) {
		within, cancel := context.WithTimeout(ctx, adoptTime)
		defer cancel()
		err := s.attachOnce(within, p)
		if err == nil || errors.Is(err, remote.ErrNotRunning) {
			return
		}
		fmt.Fprintf(s.front.err, "podrun: the supervisor of pod %s does not answer: it is replaced\n", p.place.Name)
		errs[i] = replaceSupervisor(p.place)
	})
	return errors.Join(errs...)
}
