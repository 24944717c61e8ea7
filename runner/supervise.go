package runner

import (
	"fmt"
	"os"
	"os/signal"
	"time"

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
func podOf(args []string) (store.Pod, error) {
	if len(args) != 4 {
		return store.Pod{}, fmt.Errorf("want 4 arguments, have %d", len(args))
	}
	return store.Dirs{Data: args[0], Runtime: args[1]}.Pod(args[2], args[3]), nil
}

// supervise runs one pod to its end, as the child of the pod's keeper.
func supervise(args []string) int {
	report := stage.Report()
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		fmt.Fprintln(report, err)
		return 125
	}
	place, err := podOf(args)
	if err != nil {
		return fail(err)
	}
	plan, err := place.Plan()
	if err != nil {
		return fail(err)
	}
	listener, err := place.Listen()
	if err != nil {
		return fail(err)
	}
	// libcontainer hands its environment to every init: one thread is enough there.
	os.Setenv("GOMAXPROCS", "1")
	logrus.SetLevel(logrus.ErrorLevel) // libcontainer warns of what we know: a host without cgroups
	report.Close()

	engine := newEngine(plan, place)
	control := newControl(engine)
	go control.serve(listener)
	go stopOnSignal(engine)
	idle := time.AfterFunc(idleAfter, shrink)
	l := loop{plan: plan, kernel: engine, now: readClocks, publish: func(st *pod.Status) {
		out := engine.annotate(*st)
		if err := place.WriteStatus(&out); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		control.publish(&out)
		idle.Reset(idleAfter)
	}}
	final := l.run()
	if final.Deleting {
		removeFiles(args)
	}
	control.close(listener)
	return 0
}

// stopOnSignal makes SIGTERM, from the keeper or from systemd, a graceful stop.
func stopOnSignal(e *engine) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT)
	for range signals {
		e.emit(lifecycle.Event{Kind: lifecycle.StopAsked})
	}
}
