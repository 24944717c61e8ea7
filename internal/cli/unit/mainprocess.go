// Package unit is `podrun up` as the main process of a systemd unit: it notifies systemd, takes over
// running pods, waits in a loop in C until something happens, and stops the pods with the unit.
package unit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/cli/internal/follow"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podstop"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/pull"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/cli/internal/upplan"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/sleep"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/systemd"
	"github.com/podrun/podrun/internal/wire"
)

// MainProcess is a `podrun up` in the foreground of a unit of Type=notify. It reports the state of the pods
// to systemd. Once they are ready it executes the unit loop (reexec.UnitLoop), until they end or it is
// stopped. It takes over pods of the same manifest that already run, so this process can be killed and
// restarted without any effect on the pods.
type MainProcess struct {
	Quiet      bool // do not copy the containers' output
	Signals    <-chan os.Signal
	ActiveWhen ActiveWhen
	Pods       []*podup.Target

	env           *cmdutil.Env
	dirs          store.Dirs
	launcher      cmdutil.PodLauncher
	notifier      *systemd.Notifier
	unit          string // its name; "" where it is unknown
	run           *podup.Run
	rule          follow.ExitCodeFrom
	relay         *outputPipe     // nil if output is not copied
	ready         bool            // READY=1 was sent to systemd
	startSlot     *store.FileLock // the slot for starting pods
	stopExtending func()          // of the unit's time-out
	startFinished bool            // the start is over
	gcPercent     int             // debug.SetGCPercent before the start

	reporting sync.Mutex
	lastError string // the last error that was printed
}

// ActiveWhen is the state of its pods in which a unit becomes active.
type ActiveWhen string

const (
	ActiveReady   ActiveWhen = "ready"
	ActiveRunning ActiveWhen = "running" // their app containers have started
)

// Known reports whether w is one of the states.
func (w ActiveWhen) Known() bool { return w == ActiveReady || w == ActiveRunning }

// reached reports whether a pod is in the state.
func (w ActiveWhen) reached(st *pod.Status) bool {
	if w == ActiveRunning {
		return st.AllStarted()
	}
	return st.Ready()
}

// notifyInterval is how often a supervisor sends a keep-alive message to the unit, where no process waits
// for these messages.
const notifyInterval = time.Hour

// NewMainProcess returns the MainProcess of the unit to which this process belongs.
func NewMainProcess(env *cmdutil.Env, dirs store.Dirs, launcher cmdutil.PodLauncher, n *systemd.Notifier) *MainProcess {
	s := &MainProcess{env: env, dirs: dirs, launcher: launcher, notifier: n, stopExtending: func() {}}
	if u, ok := systemd.OwnUnit(); ok {
		s.unit = u.Name
	}
	return s
}

// notify sends assignments to systemd. A message that fails is not repeated.
func (s *MainProcess) notify(assignments ...string) {
	s.reporting.Lock()
	defer s.reporting.Unlock()
	if err := s.notifier.Notify(assignments...); err != nil && s.lastError != err.Error() {
		s.lastError = err.Error()
		report.Print(s.env.ErrOut, err)
	}
}

// timeoutExtension is how far ahead the unit's time-out is kept while this process starts the pods.
const (
	timeoutExtension = time.Minute
	timeoutInterval  = 10 * time.Second
)

// extendTimeout keeps extending the unit's time-out until stop is called.
func (s *MainProcess) extendTimeout(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		for {
			s.notify(systemd.ExtendTimeout(timeoutExtension))
			if sleep.For(ctx, timeoutInterval) != nil {
				return
			}
		}
	}()
	return cancel
}

// BeforeLoad waits for a slot for starting pods.
func (s *MainProcess) BeforeLoad(ctx context.Context) error {
	s.notify(systemd.MainPID(os.Getpid()), systemd.Status("waiting for its turn to start"))
	s.stopExtending = s.extendTimeout(ctx)
	s.gcPercent = debug.SetGCPercent(cmdutil.StartGCPercent)
	return cmdutil.Interruptible(ctx, s.Signals, s.AcquireStartSlot)
}

// Loaded makes the run one of the unit.
func (s *MainProcess) Loaded(r *podup.Run, rule follow.ExitCodeFrom) error {
	s.run, s.launcher, s.rule, s.Pods, r.Unit = r, r.Launcher, rule, r.Targets, s
	s.notify(systemd.Status("starting"))
	if len(r.Workloads) > 0 && len(r.Targets) > 0 {
		return resource.RefuseMixed(resource.Documents{Pods: r.PodObjects(), Workloads: r.Workloads})
	}
	return nil
}

// Prepared records the pods as the unit's, and makes the connections of those that are started.
func (s *MainProcess) Prepared() error {
	if len(s.run.Workloads) > 0 { // their controller makes the pods
		return nil
	}
	if err := s.recordPods(); err != nil {
		return err
	}
	for _, p := range s.Pods {
		if p.RanBefore() {
			continue
		}
		if err := s.connect(p); err != nil {
			return err
		}
	}
	s.run.EachPending((*pull.Pending).Close) // their supervisors serve their sockets now
	return nil
}

// AfterStart waits for the pods, or runs the controllers of the workloads.
func (s *MainProcess) AfterStart(ctx context.Context, startErr error) error {
	s.startFinished = true
	debug.SetGCPercent(s.gcPercent)
	for _, p := range s.Pods { // the pods' own processes hold their locks now
		if p.Lock != nil {
			p.Lock.Close()
			p.Lock = nil
		}
	}
	switch {
	case errors.Is(startErr, podup.ErrInterrupted):
		<-s.Signals
		return s.end(ctx)
	case startErr != nil && len(s.run.Workloads) > 0:
		return startErr
	case startErr != nil: // pods of the unit that do run end with it
		return errors.Join(startErr, s.stop(ctx, s.run.Started()))
	case len(s.run.Workloads) > 0:
		return s.runControllers(ctx)
	}
	return s.waitReady(ctx)
}

// CleanUp ends the start. A signal during it is a requested stop, which is no failure: the pods end with
// the unit.
func (s *MainProcess) CleanUp(ctx context.Context, err error) error {
	if e := exitcode.As(err); e != nil && e.Err == nil && !s.startFinished {
		err = nil
		if s.run != nil && len(s.run.Workloads) == 0 {
			if err = errors.Join(s.run.EndPulls(ctx, false), s.stop(ctx, s.run.Started())); err == nil {
				err = s.ForgetPods()
			}
		}
	}
	if s.relay != nil {
		s.relay.finish()
	}
	s.ReleaseStartSlot()
	s.stopExtending()
	return err
}

// PullFailed reports a failed attempt to pull the unit's images. Other units may start their pods meanwhile.
func (s *MainProcess) PullFailed(err error, next time.Duration) {
	report.Print(s.env.ErrOut, fmt.Errorf("%w; next try in %v", err, next))
	s.notify(systemd.Status(fmt.Sprintf("ImagePullBackOff, next try in %v: %v", next, err)))
	s.ReleaseStartSlot()
}

// started is called when every app container has been started.
func (s *MainProcess) started() {
	s.stopExtending()
	s.ReleaseStartSlot()
}

// connect makes the connection between a new pod's supervisor and systemd, and the unit's end of it.
func (s *MainProcess) connect(p *podup.Target) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("make a socket for pod %s: %w", p.Pod.Name, err)
	}
	p.NotifyConn = os.NewFile(uintptr(fds[0]), "our end")
	p.NotifyTarget = &podinit.NotifyTarget{Socket: os.NewFile(uintptr(fds[1]), "supervisor's end"), NotifyRequest: wire.NotifyRequest{Every: notifyInterval}}
	if w := s.notifier.Watchdog(); w > 0 {
		p.NotifyTarget.Every = w / 3
	}
	if !s.Quiet && s.relay == nil {
		if s.relay, err = newOutputPipe(s.env.Out); err != nil {
			return err
		}
	}
	if s.relay != nil {
		p.NotifyTarget.Output = s.relay.end
	}
	if len(s.Pods) > 1 {
		p.NotifyTarget.Label = p.Pod.Name + "/"
	}
	return nil
}

// takeOverTime is how long a supervisor may take to answer the process that takes its pod over.
const takeOverTime = 10 * time.Second

// TakeOver makes a running pod a pod of the unit.
func (s *MainProcess) TakeOver(ctx context.Context, p *podup.Target) error {
	if err := s.attach(ctx, p); err != nil {
		return err
	}
	if p.RanBefore() {
		fmt.Fprintf(s.env.ErrOut, "podrun: pod %s is already running: it is taken over\n", p.Pod.Name)
	}
	return nil
}

// attach sends a running pod's supervisor the descriptors of a new connection. A supervisor that does not
// answer is replaced, and its successor gets them.
func (s *MainProcess) attach(ctx context.Context, p *podup.Target) error {
	for attempt := 0; ; attempt++ {
		err := s.attachOnce(ctx, p)
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case errors.Is(err, podclient.ErrNotRunning):
			p.Action, p.Started = upplan.Create, false
			return nil
		case attempt == 3:
			return fmt.Errorf("take over pod %s: %w", p.Pod.Name, err)
		case errors.Is(err, context.DeadlineExceeded):
			fmt.Fprintf(s.env.ErrOut, "podrun: the supervisor of pod %s does not answer: it is replaced\n", p.Pod.Name)
			if err := podstop.RestartSupervisor(p.Pod); err != nil {
				return err
			}
		}
		if err := sleep.For(ctx, 20*podclient.PollTime); err != nil {
			return err
		}
	}
}

func (s *MainProcess) attachOnce(ctx context.Context, p *podup.Target) error {
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
	conn, err := podclient.Send(within, p.Pod, wire.Request{Verb: wire.Notify, Notify: &p.NotifyTarget.NotifyRequest}, files...)
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

// At boot systemd starts all units at once. On a board with 30 of them, where all pull images and start
// containers at the same time, none makes progress. Start slots limit how many do so.

const startSlotPoll = 100 * time.Millisecond // between two attempts

// AcquireStartSlot waits for one of the few slots for starting pods.
func (s *MainProcess) AcquireStartSlot(ctx context.Context) error {
	if s.startSlot != nil {
		return nil
	}
	turn, err := s.awaitTurn(ctx)
	if err != nil {
		return err
	}
	defer turn.Close()
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
		if err := sleep.For(ctx, startSlotPoll); err != nil {
			return err
		}
	}
}

// awaitTurn waits until no other process looks for a slot. It waits in the kernel: thirty processes that look for one
// again and again would take processor time from those that start.
func (s *MainProcess) awaitTurn(ctx context.Context) (*store.FileLock, error) {
	turns := make(chan *store.FileLock)
	failed := make(chan error, 1)
	go func() {
		turn, err := store.LockExclusive(s.dirs.StartTurn())
		if err != nil {
			failed <- err
			return
		}
		select {
		case turns <- turn:
		case <-ctx.Done():
			turn.Close()
		}
	}()
	select {
	case turn := <-turns:
		return turn, nil
	case err := <-failed:
		return nil, report.New(report.Failure, "", "cannot wait for other pods to start: %w", err)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ReleaseStartSlot releases the slot for the next process.
func (s *MainProcess) ReleaseStartSlot() {
	if s.startSlot != nil {
		s.startSlot.Close()
		s.startSlot = nil
	}
}
