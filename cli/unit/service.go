// Package unit is podrun up as the main process of a unit of systemd: it notifies systemd, takes
// over running pods, waits in C until something happens, and stops the pods with the unit.
package unit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/exitcode"
	"github.com/podrun/podrun/cli/internal/podclient"
	"github.com/podrun/podrun/cli/internal/podstop"
	"github.com/podrun/podrun/cli/internal/podup"
	"github.com/podrun/podrun/cli/internal/rollout"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/systemd"
	"github.com/podrun/podrun/internal/wire"
)

// Service is a `podrun up` in the foreground of a unit of Type=notify: it tells systemd
// how the pods are, and once they are ready it waits, as a loop in C (stage.Wait), for
// their end or its own. Pods that run already, of the same manifest, are taken over: so
// the pods do not notice when this process is killed and started again.
type Service struct {
	env       *cmdutil.Env
	dirs      store.Dirs
	Launcher  cmdutil.PodLauncher
	notify    *systemd.Notifier
	unit      string // its name; "" where it is unknown
	Rule      rollout.ExitCodeFrom
	Quiet     bool        // what containers write is not copied
	Relay     *outputPipe // nil if it is not
	Pods      []*podup.Target
	Ready     bool            // systemd knows
	startSlot *store.FileLock // our turn to start

	telling   sync.Mutex
	lastError string // the error that was shown last
}

// notifyInterval is how often a supervisor tells that it lives where nobody listens for it.
const notifyInterval = time.Hour

// NewService returns the service of the unit that this process belongs to.
func NewService(env *cmdutil.Env, dirs store.Dirs, launcher cmdutil.PodLauncher, n *systemd.Notifier) *Service {
	s := &Service{env: env, dirs: dirs, Launcher: launcher, notify: n}
	if u, ok := systemd.OwnUnit(); ok {
		s.unit = u.Name
	}
	return s
}

// Notify tells systemd. What it does not hear is not said again.
func (s *Service) Notify(assignments ...string) {
	s.telling.Lock()
	defer s.telling.Unlock()
	if err := s.notify.Notify(assignments...); err != nil && s.lastError != err.Error() {
		s.lastError = err.Error()
		report.Print(s.env.ErrOut, err)
	}
}

// timeoutExtension is how far ahead the unit's time-out is kept while it is in our hands that
// the pods come up.
const (
	timeoutExtension = time.Minute
	timeoutInterval  = 10 * time.Second
)

// ExtendTimeout keeps the unit's time-out ahead until the result is called.
func (s *Service) ExtendTimeout(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		for {
			s.Notify(systemd.ExtendTimeout(timeoutExtension))
			if podclient.Sleep(ctx, timeoutInterval) != nil {
				return
			}
		}
	}()
	return cancel
}

// StartAndWait starts the pods and attends them. started is called when every app container
// has been started.
func (s *Service) StartAndWait(ctx context.Context, l *podup.Run, signals <-chan os.Signal, started func()) error {
	err := cmdutil.Interruptible(ctx, signals, l.Prepare)
	if e := exitcode.As(err); e != nil && e.Err == nil { // told to end
		if err := errors.Join(s.endPulls(ctx, l, false), s.stop(ctx, l.Started(), signals)); err != nil {
			return err
		}
		return s.ForgetPods()
	}
	if err == nil {
		err = s.recordPods()
	}
	if err != nil {
		return err
	}
	for _, p := range s.Pods {
		if p.Running {
			continue
		}
		if err := s.connect(p); err != nil {
			return err
		}
	}
	l.EachPending((*podup.PendingPod).Close) // their supervisors serve their sockets now
	err = l.Start()
	for _, p := range l.Targets { // the pods' own processes have their locks now
		if p.Lock != nil {
			p.Lock.Close()
			p.Lock = nil
		}
	}
	if err != nil {
		// Some pods of the unit may run: they end with it.
		return errors.Join(err, s.stop(ctx, l.Started(), signals))
	}
	return s.waitReady(ctx, signals, started)
}

// connect makes the ends of a new pod.
func (s *Service) connect(p *podup.Target) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("make a socket for pod %s: %w", p.Pod.Name, err)
	}
	p.NotifyConn = os.NewFile(uintptr(fds[0]), "our end")
	p.NotifyTarget = &podinit.NotifyTarget{Socket: os.NewFile(uintptr(fds[1]), "supervisor's end"), NotifyRequest: wire.NotifyRequest{Every: notifyInterval}}
	if w := s.notify.Watchdog(); w > 0 {
		p.NotifyTarget.Every = w / 3
	}
	if !s.Quiet && s.Relay == nil {
		if s.Relay, err = newOutputPipe(s.env.Out); err != nil {
			return err
		}
	}
	if s.Relay != nil {
		p.NotifyTarget.Output = s.Relay.end
	}
	if len(s.Pods) > 1 {
		p.NotifyTarget.Label = p.Pod.Name + "/"
	}
	return nil
}

// takeOverTime is how long a supervisor may take to answer who takes its pod over.
const takeOverTime = 10 * time.Second

// Adopt takes a pod over that runs already. One of this unit that was made from another
// manifest makes way for the new one.
func (s *Service) Adopt(ctx context.Context, l *podup.Run, p *podup.Target) error {
	err := l.CompareRunning(p)
	if errors.Is(err, cmdutil.ErrImmutable) && s.owns(p.Pod) {
		p.ReplacesOld, err = true, nil
	}
	if p.Pending { // this process pulls now
		p.AwaitsImages, p.Running, p.Started, p.ReplacesOld = false, false, false, true
	}
	if err != nil || !p.Running {
		return err
	}
	if err := s.attach(ctx, p); err != nil {
		return err
	}
	if p.Running {
		fmt.Fprintf(s.env.ErrOut, "podrun: pod %s runs already: it is taken over\n", p.Pod.Name)
	}
	return nil
}

// attach gives a running pod's supervisor our ends. A supervisor that does not answer
// is replaced, and the pod taken over from the next one.
func (s *Service) attach(ctx context.Context, p *podup.Target) error {
	for attempt := 0; ; attempt++ {
		err := s.attachOnce(ctx, p)
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case errors.Is(err, podclient.ErrNotRunning):
			p.Running, p.Started, p.Change = false, false, nil
			return nil
		case attempt == 3:
			return fmt.Errorf("take over pod %s: %w", p.Pod.Name, err)
		case errors.Is(err, context.DeadlineExceeded):
			fmt.Fprintf(s.env.ErrOut, "podrun: the supervisor of pod %s does not answer: it is replaced\n", p.Pod.Name)
			if err := podstop.RestartSupervisor(p.Pod); err != nil {
				return err
			}
		}
		if err := podclient.Sleep(ctx, 20*podclient.PollTime); err != nil {
			return err
		}
	}
}

func (s *Service) attachOnce(ctx context.Context, p *podup.Target) error {
	p.CloseNotify()
	if err := s.connect(p); err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, takeOverTime)
	defer cancel()
	files := []*os.File{p.NotifyTarget.Socket}
	if p.NotifyTarget.Output != nil {
		files = append(files, p.NotifyTarget.Output)
	}
	conn, err := podclient.Ask(within, p.Pod, wire.Request{Verb: wire.Notify, Notify: &p.NotifyTarget.NotifyRequest}, files...)
	if err == nil {
		defer conn.Close()
		var frame wire.Frame
		if frame, _, err = wire.ReadFrame(conn); err == nil && frame.Error != nil {
			err = podclient.ResponseError(frame.Error)
		}
	}
	if within.Err() != nil && ctx.Err() == nil {
		err = within.Err()
	}
	if err != nil {
		p.CloseNotify()
		return err
	}
	p.NotifyTarget.Socket.Close()
	return nil
}

// At boot systemd starts all units at once. On a board with 30 of them, all bringing in
// images and starting containers together, none gets anywhere: they take turns.

const startSlotPoll = 500 * time.Millisecond // between two looks

// AcquireStartSlot waits until this is one of the few processes that bring pods up.
func (s *Service) AcquireStartSlot(ctx context.Context) error {
	for {
		for i := range max(2, runtime.NumCPU()) {
			lock, err := store.OpenFileLock(s.dirs.StartSlot(i))
			if err != nil {
				return report.New(report.Failure, "", "cannot wait for other pods to start: %w", err)
			}
			if free, err := lock.TryExclusive(); free {
				s.startSlot = lock
				return nil
			} else if lock.Close(); err != nil {
				return fmt.Errorf("cannot wait for other pods to start: %w", err)
			}
		}
		if err := podclient.Sleep(ctx, startSlotPoll); err != nil {
			return err
		}
	}
}

// ReleaseStartSlot lets the next one start.
func (s *Service) ReleaseStartSlot() {
	if s.startSlot != nil {
		s.startSlot.Close()
		s.startSlot = nil
	}
}
