package runner

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"time"
	"unsafe"

	_ "github.com/opencontainers/cgroups/devices" // without it libcontainer refuses every device rule
	"github.com/opencontainers/runc/libcontainer"
	_ "github.com/opencontainers/runc/libcontainer/nsenter" // the C half of libcontainer's init
	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/memory"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/timerslack"
	"github.com/podrun/podrun/runner/clock"
	"github.com/podrun/podrun/runner/filter"
	"github.com/podrun/podrun/runner/handoff"
	"github.com/podrun/podrun/runner/sandbox"
)

// EntryPoints returns the re-exec entry points of this package: the supervisor, removals, the compiler of
// seccomp filters, and libcontainer's init, whose name libcontainer has chosen.
func EntryPoints() map[string]func([]string) int {
	return map[string]func([]string) int{
		protocol.EntrySupervisor:  supervise,
		protocol.EntryRemoveFiles: removeFiles,
		protocol.EntryRemovePod:   removePod,

		protocol.EntryRemoveVolume: removeVolume,
		protocol.EntryFilter:       filter.Main,
		"init": func([]string) int {
			libcontainer.Init() // does not return
			return 255
		},
	}
}

// podOf parses the arguments of a pod's re-exec entry point: the two roots, namespace and name.
func podOf(args []string) (store.Dirs, store.Pod, error) {
	if len(args) != 4 {
		return store.Dirs{}, store.Pod{}, fmt.Errorf("want 4 arguments, have %d", len(args))
	}
	dirs := store.Dirs{Data: args[0], Runtime: args[1]}
	return dirs, dirs.Pod(args[2], args[3]), nil
}

// maxProcs is the number of threads that run Go code in a supervisor. It computes little, but libcontainer and the
// network block threads in system calls, and the Go runtime notices only after up to 8 ms that another goroutine could
// run instead: its monitor thread sleeps for 4 ms (see internal/timerslack). Each thread takes 0.4 MB of memory.
// libcontainer's processes run with the GOMAXPROCS=1 of their environment.
const maxProcs = 3

// shrinkAfter is the time without changes after which the supervisor shrinks. It is longer than
// defaultHibernateAfter: a supervisor that soon ends need not collect its garbage.
const shrinkAfter = 3 * time.Second

// supervisor is the supervisor of one pod: its engine, control socket and signals.
type supervisor struct {
	pod       store.Pod
	engine    *engine
	control   *control
	listener  *net.UnixListener
	stops     chan os.Signal
	flushed   chan struct{} // gets a value when every earlier signal has become an event
	idleAfter time.Duration // the idle time before it hibernates; 0: never
}

// stopSignals are the signals with which systemd or a user stops the pod. A signal that arrives before
// signal.Notify ends this process; pod init keeps the request.
var stopSignals = []os.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP}

// supervise runs one pod as the child of its pod init, until the pod ends or this process does.
func supervise(args []string) int {
	unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(unsafe.StringData(protocol.CommSupervisor+"\x00"))), 0, 0, 0)
	timerslack.WidenMonitor()
	runtime.GOMAXPROCS(maxProcs)
	debug.SetGCPercent(memory.StartPercent)
	logrus.SetLevel(logrus.ErrorLevel) // its warnings are about known cases: a host without cgroups
	log.SetOutput(io.Discard)          // net/http logs what a probed server sends unasked, so a container could fill the disk
	s, l, err := openPod(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "podrun:", err)
		switch {
		case errors.Is(err, errSandboxLost):
			return protocol.ExitSandboxLost
		case errors.As(err, new(unrecoverable)):
			return protocol.ExitUnrecoverable
		}
		return 1
	}
	go s.control.serve(s.listener)
	signal.Notify(s.stops, stopSignals...)
	go s.stopOnSignal()
	shrinker := memory.NewShrinker(shrinkAfter, 32<<10)
	l.publish = func(st *pod.Status) {
		out := s.engine.completeStatus(*st)
		write := s.pod.WriteStatus
		if s.control.removing.Load() {
			write = s.pod.WriteRemoving
		}
		if err := write(&out); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		s.engine.publishEndpoint(&out)
		s.control.publish(&out)
		s.engine.notifier.SendStatus(&out)
		shrinker.Touch()
	}
	l.recordEvents = func(log *pod.EventLog) {
		if err := s.pod.WriteEvents(log); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	final := <-onOtherThreads(l.run)
	if s.engine.currentPlan().RemoveAtEnd && !neverStarted(final) {
		s.control.markRemoving()
	}
	removing := s.control.removing.Load()
	code := 0
	if final.Deleting || removing {
		code = removeFiles(args)
	}
	if removing && code == 0 {
		if err := removeSelf(s.pod); err != nil {
			fmt.Fprintln(os.Stderr, err) // the monitor tries again
		}
	}
	s.engine.handoff.PodInit.PodEnded(0)
	s.control.shutdown(s.listener)
	return 0
}

// neverStarted reports whether the first start of a container failed, and no other start followed. The command
// that made the pod reads why, and removes the pod.
func neverStarted(st *pod.Status) bool {
	return slices.ContainsFunc(st.Containers, func(c pod.ContainerStatus) bool {
		return c.RestartCount == 0 && c.State.Terminated != nil && c.State.Terminated.Reason == "StartError"
	})
}

// onOtherThreads runs the loop on other threads than the main one, which is locked to the main goroutine
// (init of internal/reexec). Each switch to a goroutine that is locked to a thread wakes that thread and two
// more.
func onOtherThreads(run func() *pod.Status) <-chan *pod.Status {
	final := make(chan *pod.Status)
	go func() { final <- run() }()
	return final
}

// openPod starts a new pod, or recovers one whose supervisor has ended.
func openPod(args []string) (*supervisor, *loop, error) {
	podInit, inherited, err := podinit.Connect()
	if err != nil {
		return nil, nil, err
	}
	if inherited == nil { // the CLI records the pod while this process starts
		if err := podinit.AwaitRecord(); err != nil {
			return nil, nil, reportError(inherited, err)
		}
	}
	dirs, p, plan, err := findPod(args, inherited)
	if err != nil {
		return nil, nil, reportError(inherited, err)
	}
	e := newEngine(plan, p, handoff.New(podInit, p), sandbox.PodNamespaces(plan))
	s := &supervisor{pod: p, engine: e, control: newControl(e), stops: make(chan os.Signal, 1), flushed: make(chan struct{}), idleAfter: hibernateAfter()}
	l := &loop{plan: plan, executor: e, now: clock.Now, heartbeat: e.notifier.Heartbeat, ping: e.notifier.Ping, prepare: e.prepare, replan: e.takeLatestPlan, statusChanged: e.warned}
	if s.idleAfter > 0 {
		l.quiet = func() time.Duration { return s.idleAfter }
		l.onIdle, l.delegable = s.hibernate, e.isDelegable
	}
	switch {
	case inherited == nil:
		if l.observed, err = s.startNew(dirs); err != nil {
			return nil, nil, reportError(inherited, err)
		}
	case inherited.PodInitKilled:
		l.observed, err = s.recoverAfterPodInitDeath()
	default:
		l.observed, err = s.recover(inherited)
	}
	if st, serr := p.Status(); inherited != nil && serr == nil {
		e.podIPs, e.hostIPs = st.PodIPs, st.HostIPs
	}
	if err == nil && p.Removing() { // the client may be gone, and the request not recorded
		s.control.removing.Store(true)
		e.emit(lifecycle.Event{Kind: lifecycle.StopRequested})
	}
	return s, l, err
}

// findPod returns the pod to open and its Plan. inherited is nil for a new pod.
func findPod(args []string, inherited *podinit.Inherited) (dirs store.Dirs, p store.Pod, plan *pod.Plan, err error) {
	if dirs, p, err = podOf(args); err != nil {
		return dirs, p, nil, err
	}
	if inherited != nil && inherited.PodInitKilled {
		if p, err = restoreRuntime(dirs, p); err != nil {
			return dirs, p, nil, err // it may have been deleted again meanwhile: the monitor starts another pod init
		}
	}
	if plan, err = p.Plan(); err != nil {
		if inherited != nil && handoff.IsDamaged(err) {
			err = unrecoverable{err}
		}
		return dirs, p, nil, err
	}
	if plan.InCluster() {
		p = p.OfCluster()
	}
	return dirs, p, plan, nil
}

// startNew prepares the first supervisor of a pod.
func (s *supervisor) startNew(dirs store.Dirs) (known lifecycle.Observed, err error) {
	if err := s.engine.hostPorts.AcceptInherited(s.engine.plan); err != nil {
		return known, err
	}
	if err := sandbox.CheckOverlay(dirs, s.pod); err != nil {
		return known, err
	}
	if known, err = s.newOrLost(); err != nil {
		return known, err
	}
	if err := s.engine.notifier.AcceptInherited(); err != nil {
		return known, err
	}
	if err := s.listenAndServe(known); err != nil {
		return known, err
	}
	return known, podinit.ReportPipe().Close()
}

// listenAndServe opens the control socket of a pod whose pod init holds none, and has pod init hold it. Then
// it saves what is known of the pod, and reports to pod init that the pod is served.
func (s *supervisor) listenAndServe(known lifecycle.Observed) (err error) {
	if s.listener, err = s.pod.Listen(); err != nil {
		return err
	}
	podInit := s.engine.handoff.PodInit
	if err := podInit.Watch(protocol.KeptControl, s.listener); err != nil {
		return err
	}
	s.engine.Save(&known)
	s.engine.listenPodInit()
	podInit.Serving()
	return nil
}

// reportError reports to the process that started the pod why the start failed. No process waits for the
// report of a recovered pod.
func reportError(inherited *podinit.Inherited, err error) error {
	if inherited == nil {
		podinit.ReportError(err)
	}
	return err
}

// stopOnSignal turns each signal into a graceful stop.
func (s *supervisor) stopOnSignal() {
	for sig := range s.stops {
		if sig == nil {
			s.flushed <- struct{}{}
			continue
		}
		s.engine.emit(lifecycle.Event{Kind: lifecycle.StopRequested})
	}
}

// releaseStops restores the default action of the stop signals: a later signal ends this process, and pod
// init handles it. releaseStops returns when every earlier signal has become an event.
func (s *supervisor) releaseStops() {
	signal.Stop(s.stops)
	s.stops <- nil
	<-s.flushed
}
