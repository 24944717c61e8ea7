package runner

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
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
	"github.com/podrun/podrun/runner/filter"
)

// Stages are the hidden stages that this room is: the supervisor, libcontainer's
// init (its name is libcontainer's), and the removal of a dead pod's files.
func Stages() map[string]func([]string) int {
	return map[string]func([]string) int{
		stage.Supervisor: supervise,
		stage.Remove:     removeFiles,
		stage.Leave:      leave,

		stage.RemoveVolume: removeVolume,
		filter.Stage:       filter.Main,
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
	stops    chan os.Signal
	passed   chan struct{} // every signal before has become an event
	quiet    time.Duration // for how long nothing must happen before it dozes; 0: it never does
}

// stopSignals are what systemd or a user may send to stop the pod. One that comes before
// they are listened to ends this process, and is the keeper's to remember.
var stopSignals = []os.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP}

// supervise runs one pod, as the child of the pod's keeper: to its end, or as long as
// this process is let live.
func supervise(args []string) int {
	unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(unsafe.StringData("podrun-superv\x00"))), 0, 0, 0)
	runtime.GOMAXPROCS(procs)
	debug.SetGCPercent(garbageAtStart)
	logrus.SetLevel(logrus.ErrorLevel) // libcontainer warns of what we know: a host without cgroups
	s, l, err := takeUp(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "podrun:", err)
		if errors.As(err, new(hopeless)) {
			return stage.Hopeless
		}
		return 1
	}
	go s.control.serve(s.listener)
	signal.Notify(s.stops, stopSignals...)
	go s.stopOnSignal()
	idle := shrinkWhenIdle()
	l.publish = func(st *pod.Status) {
		out := s.engine.annotate(*st)
		write := s.place.WriteStatus
		if s.control.leaving.Load() {
			write = s.place.WriteRemoving
		}
		if err := write(&out); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		s.engine.announce(&out)
		s.control.publish(&out)
		s.engine.herald.status(&out)
		idle()
	}
	l.record = func(log *pod.EventLog) {
		if err := s.place.WriteEvents(log); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	final := <-beside(l.run)
	leaving := s.control.leaving.Load()
	removed := 0
	if final.Deleting || leaving {
		removed = removeFiles(args)
	}
	if leaving && removed == 0 {
		if err := removeOwn(s.place); err != nil {
			fmt.Fprintln(os.Stderr, err) // the guard has it tried again
		}
	}
	s.engine.estate.keeper.Over(0)
	s.control.close(s.listener)
	return 0
}

// beside runs the loop on other threads than the main one, which stays the main goroutine's
// (stage.Supervisor): each turn of a goroutine that has a thread of its own wakes that and two
// more.
func beside(run func() *pod.Status) <-chan *pod.Status {
	final := make(chan *pod.Status)
	go func() { final <- run() }()
	return final
}

// takeUp begins with a pod, or goes on with one where another supervisor has ended.
func takeUp(args []string) (*supervisor, *loop, error) {
	keeper, was, err := stage.OpenKeeper()
	if err != nil {
		return nil, nil, err
	}
	if was == nil { // before that nothing says where the pod's runtime directory is
		if err := stage.AwaitRecord(); err != nil {
			return nil, nil, tell(was, err)
		}
	}
	dirs, place, err := podOf(args)
	if err != nil {
		return nil, nil, tell(was, err)
	}
	plan, err := place.Plan()
	if err != nil && was != nil && damaged(err) {
		err = hopeless{err}
	}
	if err != nil {
		return nil, nil, tell(was, err)
	}
	e := newEngine(plan, place, newEstate(keeper, place), ofKeeper(plan))
	s := &supervisor{place: place, engine: e, control: newControl(e), stops: make(chan os.Signal, 1), passed: make(chan struct{}), quiet: dozeAfter()}
	l := &loop{plan: plan, kernel: e, now: readClocks, beat: e.herald.beat, alive: e.herald.alive, prepare: e.prepare, replan: e.replan, again: e.warned}
	if s.quiet > 0 {
		l.quiet = func() time.Duration { return s.quiet }
		l.idle = s.doze
	}
	switch {
	case was == nil:
		if l.observe, err = s.begin(dirs); err != nil {
			return nil, nil, tell(was, err)
		}
	case was.Lost:
		l.observe, err = s.rise()
	default:
		l.observe, err = s.adopt(was)
	}
	if st, serr := place.Status(); was != nil && serr == nil {
		e.podIPs, e.hostIPs = st.PodIPs, st.HostIPs
	}
	if err == nil && place.Removing() { // whoever asked for it may be gone, and the request not on record
		s.control.leaving.Store(true)
		e.emit(lifecycle.Event{Kind: lifecycle.StopAsked})
	}
	return s, l, err
}

// begin is for the first supervisor of a pod.
func (s *supervisor) begin(dirs store.Dirs) (known lifecycle.Observed, err error) {
	if err := s.engine.published.takeHanded(s.engine.plan); err != nil {
		return known, err
	}
	if err := tryOverlay(dirs, s.place); err != nil {
		return known, err
	}
	if known, err = s.recall(); err != nil {
		return known, err
	}
	if err := s.engine.herald.inherit(); err != nil {
		return known, err
	}
	if err := s.serve(known); err != nil {
		return known, err
	}
	return known, stage.Report().Close()
}

// serve opens the control socket where the keeper has none.
func (s *supervisor) serve(known lifecycle.Observed) (err error) {
	if s.listener, err = s.place.Listen(); err != nil {
		return err
	}
	keeper := s.engine.estate.keeper
	if err := keeper.Watch(controlName, s.listener); err != nil {
		return err
	}
	s.engine.Record(&known)
	s.engine.listen()
	keeper.Serving()
	return nil
}

// tell tells the one who started the pod why it was not. Nobody waits for a supervisor
// that takes up a pod.
func tell(was *stage.Inherited, err error) error {
	if was == nil {
		stage.Tell(err)
	}
	return err
}

// stopOnSignal makes each signal a graceful stop.
func (s *supervisor) stopOnSignal() {
	for sig := range s.stops {
		if sig == nil {
			s.passed <- struct{}{}
			continue
		}
		s.engine.emit(lifecycle.Event{Kind: lifecycle.StopAsked})
	}
}

// passStops lets a stop signal end this process from now on, by which the keeper knows
// of it, and returns when every one before has become an event.
func (s *supervisor) passStops() {
	signal.Stop(s.stops)
	s.stops <- nil
	<-s.passed
}
