package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/systemd"
	"github.com/podrun/podrun/internal/wire"
)

// service is a `podrun up` in the foreground of a unit of Type=notify: it tells systemd
// how the pods are, and once they are ready it waits, as a loop in C (stage.Wait), for
// their end or its own. Pods that run already, of the same manifest, are taken over: so
// the pods do not notice when this process is killed and started again.
type service struct {
	front  *front
	dirs   store.Dirs
	keeper pods
	notify *systemd.Notifier
	unit   string // its name; "" where it is unknown
	rule   exitFrom
	quiet  bool   // what containers write is not copied
	relay  *relay // nil if it is not
	pods   []*upPod
	ready  bool            // systemd knows
	slot   *store.FileLock // our turn to start

	telling sync.Mutex
	said    string // the error that was shown last
}

// silence is how often a supervisor tells that it lives where nobody listens for it.
const silence = time.Hour

func (f *front) newService(dirs store.Dirs, keeper pods, n *systemd.Notifier) *service {
	s := &service{front: f, dirs: dirs, keeper: keeper, notify: n}
	if u, ok := systemd.OwnUnit(); ok {
		s.unit = u.Name
	}
	return s
}

// tell tells systemd. What it does not hear is not said again.
func (s *service) tell(assignments ...string) {
	s.telling.Lock()
	defer s.telling.Unlock()
	if err := s.notify.Notify(assignments...); err != nil && s.said != err.Error() {
		s.said = err.Error()
		report.Print(s.front.err, err)
	}
}

// stretch is how far ahead the unit's time-out is kept while it is in our hands that
// the pods come up.
const (
	stretch      = time.Minute
	stretchEvery = 10 * time.Second
)

// keepStarting keeps the unit's time-out ahead until the result is called.
func (s *service) keepStarting(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		for {
			s.tell(systemd.ExtendTimeout(stretch))
			if remote.Pause(ctx, stretchEvery) != nil {
				return
			}
		}
	}()
	return cancel
}

// upUnit is `podrun up` in a unit: it brings the pods up, when it is its turn, and lives
// as long as they do.
func (f *front) upUnit(c *cli.Context, files []string, n *systemd.Notifier, signals <-chan os.Signal) error {
	dirs, err := f.dirs()
	if err != nil {
		return err
	}
	s := f.newService(dirs, nil, n)
	s.quiet = c.Bool("quiet")
	s.tell(systemd.MainPID(os.Getpid()), systemd.Status("waiting for its turn to start"))
	stop := s.keepStarting(c.Context)
	defer stop()
	defer s.giveTurn()
	err = interruptible(c.Context, signals, s.takeTurn)
	if e := asExit(err); e != nil && e.err == nil {
		return nil // told to end, which is no failure
	}
	if err != nil {
		return err
	}
	l, rule, err := f.newLaunch(c, files)
	if err != nil {
		return err
	}
	defer l.release()
	defer func() {
		if s.relay != nil {
			s.relay.finish()
		}
	}()
	s.keeper, s.rule, s.pods, l.service = l.keeper, rule, l.pods, s
	s.tell(systemd.Status("starting"))
	started := func() {
		stop()
		s.giveTurn()
	}
	if len(l.workloads) > 0 {
		return s.employ(c.Context, l, signals, started)
	}
	return s.bringUp(c.Context, l, signals, started)
}

// bringUp starts the pods and attends them. started is called when every app container
// has been started.
func (s *service) bringUp(ctx context.Context, l *launch, signals <-chan os.Signal, started func()) error {
	err := interruptible(ctx, signals, l.prepare)
	if e := asExit(err); e != nil && e.err == nil { // told to end
		if err := errors.Join(s.endPulls(ctx, l, false), s.stop(ctx, l.started(), signals)); err != nil {
			return err
		}
		return s.forget()
	}
	if err == nil {
		err = s.record()
	}
	if err != nil {
		return err
	}
	for _, p := range s.pods {
		if p.running {
			continue
		}
		if err := s.connect(p); err != nil {
			return err
		}
	}
	l.eachPending((*pendingPod).close) // their supervisors serve their sockets now
	err = l.start()
	for _, p := range l.pods { // the pods' own processes have their locks now
		if p.lock != nil {
			p.lock.Close()
			p.lock = nil
		}
	}
	if err != nil {
		// Some pods of the unit may run: they end with it.
		return errors.Join(err, s.stop(ctx, l.started(), signals))
	}
	return s.attend(ctx, signals, started)
}

// connect makes the ends of a new pod.
func (s *service) connect(p *upPod) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("make a socket for pod %s: %w", p.place.Name, err)
	}
	p.socket = os.NewFile(uintptr(fds[0]), "our end")
	p.front = &podinit.NotifyTarget{Socket: os.NewFile(uintptr(fds[1]), "supervisor's end"), NotifyRequest: wire.NotifyRequest{Every: silence}}
	if w := s.notify.Watchdog(); w > 0 {
		p.front.Every = w / 3
	}
	if !s.quiet && s.relay == nil {
		if s.relay, err = newRelay(s.front.out); err != nil {
			return err
		}
	}
	if s.relay != nil {
		p.front.Output = s.relay.end
	}
	if len(s.pods) > 1 {
		p.front.Label = p.place.Name + "/"
	}
	return nil
}

// hangUp closes the ends of a pod.
func (p *upPod) hangUp() {
	if p.front != nil {
		p.front.Socket.Close()
		p.socket.Close()
	}
	p.front, p.socket = nil, nil
}

// adoptTime is how long a supervisor may take to answer who takes its pod over.
const adoptTime = 10 * time.Second

// adopt takes a pod over that runs already. One of this unit that was made from another
// manifest makes way for the new one.
func (s *service) adopt(ctx context.Context, l *launch, p *upPod) error {
	err := l.recognize(p)
	if errors.Is(err, errOtherManifest) && s.owned(p.place) {
		p.replaces, err = true, nil
	}
	if p.pending { // this process pulls now
		p.awaits, p.running, p.started, p.replaces = false, false, false, true
	}
	if err != nil || !p.running {
		return err
	}
	if err := s.attach(ctx, p); err != nil {
		return err
	}
	if p.running {
		fmt.Fprintf(s.front.err, "podrun: pod %s runs already: it is taken over\n", p.place.Name)
	}
	return nil
}

// attach gives a running pod's supervisor our ends. A supervisor that does not answer
// is replaced, and the pod taken over from the next one.
func (s *service) attach(ctx context.Context, p *upPod) error {
	for attempt := 0; ; attempt++ {
		err := s.attachOnce(ctx, p)
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case errors.Is(err, remote.ErrNotRunning):
			p.running, p.started, p.change = false, false, nil
			return nil
		case attempt == 3:
			return fmt.Errorf("take over pod %s: %w", p.place.Name, err)
		case errors.Is(err, context.DeadlineExceeded):
			fmt.Fprintf(s.front.err, "podrun: the supervisor of pod %s does not answer: it is replaced\n", p.place.Name)
			if err := replaceSupervisor(p.place); err != nil {
				return err
			}
		}
		if err := remote.Pause(ctx, 20*remote.PollTime); err != nil {
			return err
		}
	}
}

func (s *service) attachOnce(ctx context.Context, p *upPod) error {
	p.hangUp()
	if err := s.connect(p); err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, adoptTime)
	defer cancel()
	files := []*os.File{p.front.Socket}
	if p.front.Output != nil {
		files = append(files, p.front.Output)
	}
	conn, err := remote.Ask(within, p.place, wire.Request{Verb: wire.Notify, Notify: &p.front.NotifyRequest}, files...)
	if err == nil {
		defer conn.Close()
		var frame wire.Frame
		if frame, _, err = wire.ReadFrame(conn); err == nil && frame.Error != nil {
			err = wireError(frame.Error)
		}
	}
	if within.Err() != nil && ctx.Err() == nil {
		err = within.Err()
	}
	if err != nil {
		p.hangUp()
		return err
	}
	p.front.Socket.Close()
	return nil
}
