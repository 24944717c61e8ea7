package runner

import (
	"fmt"
	"net"
	"os"
	"time"
	"unsafe"

	_ "github.com/opencontainers/cgroups/devices" // without it libcontainer refuses every device rule
	"github.com/opencontainers/runc/libcontainer"
	_ "github.com/opencontainers/runc/libcontainer/nsenter" // the C half of libcontainer's init
	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/stage"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/pod"
)

// Stages are the hidden stages that this room is: the supervisor, libcontainer's
// init (its name is libcontainer's), and the removal of a dead pod's files.
func Stages() map[string]func([]string) int {
	return map[string]func([]string) int{
		stage.Supervisor: supervise,
		stage.Remove:     removeFiles,
		"init": func([]string) int {
			libcontainer.Init() // does not return
			return 255
		},
	}
}

// podOf reads the arguments of a pod's stage: the two roots, namespace and name.
func podOf(args []string) (store.Dirs, store.Pod, error) {
	if len(args) != 4 {
		return store.Dirs{}, store.Pod{}, fmt.Errorf("want 4 arguments, have %d", len(args))
	}
	dirs := store.Dirs{Data: args[0], Runtime: args[1]}
	return dirs, dirs.Pod(args[2], args[3]), nil
}

// supervisor is one pod's: the engine with what lets others see and ask.
type supervisor struct {
	place    store.Pod
	engine   *engine
	control  *control
	listener *net.UnixListener
	quiet    time.Duration // for how long nothing must happen before it dozes; 0: it never does
}

// supervise runs one pod to its end, as the child of the pod's keeper.
func supervise(args []string) int {
	unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(unsafe.StringData("podrun-superv\x00"))), 0, 0, 0)
	logrus.SetLevel(logrus.ErrorLevel) // libcontainer warns of what we know: a host without cgroups
	s, l, err := takeUp(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	go s.control.serve(s.listener)
	go stopOnSignal(s.engine, stage.Stops())
	if os.Getenv(stage.WakeEnv) == "stop" {
		s.engine.emit(lifecycle.Event{Kind: lifecycle.StopAsked})
	}
	os.Unsetenv(stage.WakeEnv)
	idle := time.AfterFunc(idleAfter, shrink)
	l.publish = func(st *pod.Status) {
		out := s.engine.annotate(*st)
		if err := s.place.WriteStatus(&out); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		s.control.publish(&out)
		s.engine.herald.status(&out)
		idle.Reset(idleAfter)
	}
	l.record = func(log *pod.EventLog) {
		if err := s.place.WriteEvents(log); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	final := l.run()
	if final.Deleting {
		removeFiles(args)
	}
	s.control.close(s.listener)
	return 0
}

// takeUp begins with a pod, or goes on with one where this process has dozed off.
func takeUp(args []string) (*supervisor, *loop, error) {
	dirs, place, err := podOf(args)
	if err != nil {
		return nil, nil, tell(err)
	}
	plan, err := place.Plan()
	if err != nil {
		return nil, nil, tell(err)
	}
	e := newEngine(plan, place)
	s := &supervisor{place: place, engine: e, control: newControl(e), quiet: dozeAfter()}
	l := &loop{plan: plan, kernel: e, now: readClocks, beat: e.herald.beat, alive: e.herald.alive, replan: e.replan, again: e.warned}
	if s.quiet > 0 {
		l.quiet = func() time.Duration { return s.quiet }
		l.idle = s.doze
	}
	if os.Getenv(stage.WakeEnv) != "" {
		l.observe, err = awake(plan, s)
		return s, l, err
	}
	if err := e.herald.inherit(); err != nil {
		return nil, nil, tell(err)
	}
	if err := tryOverlay(dirs, place); err != nil {
		return nil, nil, tell(err)
	}
	if s.listener, err = place.Listen(); err != nil {
		return nil, nil, tell(err)
	}
	stage.Report().Close()
	return s, l, nil
}

// tell tells the one who started the pod why it was not. Nobody waits for a
// supervisor that wakes.
func tell(err error) error {
	if os.Getenv(stage.WakeEnv) == "" {
		stage.Tell(err)
	}
	return err
}

// dozeAfter is the environment's PODRUN_DOZE_AFTER (as "2s"; "0" never), which the
// pod has from the one who started it.
func dozeAfter() time.Duration {
	d, err := time.ParseDuration(os.Getenv("PODRUN_DOZE_AFTER"))
	if err != nil || d < 0 {
		return firstDoze
	}
	return d
}

// stopOnSignal makes each signal a graceful stop.
func stopOnSignal(e *engine, signals <-chan os.Signal) {
	for range signals {
		e.emit(lifecycle.Event{Kind: lifecycle.StopAsked})
	}
}

// holdStops keeps stop signals for the program that this thread, the main one,
// executes. release undoes it.
func holdStops() (release func(), err error) {
	var set, before unix.Sigset_t
	for _, s := range stage.StopSignals() {
		n := uint(s.(unix.Signal)) - 1
		bits := uint(unsafe.Sizeof(set.Val[0])) * 8
		set.Val[n/bits] |= 1 << (n % bits)
	}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, &before); err != nil {
		return nil, fmt.Errorf("hold signals: %w", err)
	}
	return func() { unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil) }, nil
}
