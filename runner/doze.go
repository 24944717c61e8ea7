package runner

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/stage"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/lifecycle"
)

// A pod that is quiet needs no supervisor: it executes, in its own place, a small
// loop in C (stage/userns/doze.c) that watches what it watched and executes the
// supervisor again. Nothing of the pod notices: the process stays the same.

// How long a pod has to be quiet for its supervisor to doze: at first, and at most.
// Each time that it is woken soon the next wait is twice as long, so that a pod that
// logs now and then does not keep executing programs.
const (
	firstDoze = 2 * time.Second
	lastDoze  = 5 * time.Minute
	soon      = time.Minute
)

// nap is for how long at least a supervisor must have nothing to do to doze: falling
// asleep and waking costs as much as a hundred probes. One with a probe every ten
// seconds stays awake.
const nap = 30 * time.Second

// maxWatched is how many descriptors the loop takes.
const maxWatched = 200

// asleep is what a supervisor leaves to the one it is when it wakes.
type asleep struct {
	Observed   lifecycle.Observed
	PausePID   int
	Cgroup     string
	Warnings   []string
	Containers []sleeper
	Listener   uintptr
	Front      *outpost      // who serves systemd, if anybody
	Since      time.Duration // CLOCK_BOOTTIME
	Wake       time.Duration // CLOCK_BOOTTIME at which it wanted to wake; 0: never
	Quiet      time.Duration // how long it was quiet before
}

// sleeper is a running container of a supervisor that dozes.
type sleeper struct {
	Name    string
	Attempt int
	PID     int
	MountNS string
	UID     int
	GID     int
	Groups  []int
	Streams []sleepingStream
}

type sleepingStream struct {
	Name string
	FD   uintptr
	Rest []byte
}

func sleepFile(p store.Pod) string { return filepath.Join(p.RuntimeDir(), "asleep.json") }

// doze replaces the supervisor if nothing is under way, and does not return then.
// wake is when the loop must decide again (CLOCK_BOOTTIME; 0: never). It must be
// called by the loop, the only reader of events.
func (s *supervisor) doze(observed *lifecycle.Observed, wake time.Duration) {
	if wake > 0 && wake-readClocks().Boot < nap {
		return
	}
	defer func() { s.quiet = min(2*s.quiet, lastDoze) }()
	if !s.control.pause(s.listener) {
		return
	}
	defer s.control.resume(s.listener)
	e := s.engine
	e.reaping.Lock()
	defer e.reaping.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.busy > 0 || len(e.events) > 0 || e.sandbox == nil || e.wroteSince(s.quiet) {
		return
	}
	for _, r := range e.runs {
		r.container.log.pause()
		defer r.container.log.resume()
	}
	if err := s.execute(observed, wake); err != nil {
		fmt.Fprintln(os.Stderr, "doze:", err)
	}
}

// wroteSince says whether a container has logged within a time. The caller holds mu.
func (e *engine) wroteSince(d time.Duration) bool {
	for _, r := range e.runs {
		r.container.log.mu.Lock()
		wrote := r.container.log.wrote
		r.container.log.mu.Unlock()
		if time.Since(wrote) < d {
			return true
		}
	}
	return false
}

// execute saves the state and becomes the loop. It returns on failure only.
func (s *supervisor) execute(observed *lifecycle.Observed, wake time.Duration) error {
	listener, err := descriptor(s.listener)
	if err != nil {
		return err
	}
	state := asleep{
		Observed: *observed, PausePID: s.engine.sandbox.pausePID, Warnings: s.engine.warnings,
		Listener: listener, Since: readClocks().Boot, Wake: wake, Quiet: s.quiet,
	}
	if s.engine.sandbox.cgroup != nil {
		state.Cgroup = s.engine.sandbox.cgroup.Path()
	}
	watch := []uintptr{listener}
	for _, r := range s.engine.runs {
		c, err := r.container.asleep()
		if err != nil {
			return err
		}
		if text := r.container.log.warning(c.Name); text != "" {
			state.Warnings = append(state.Warnings, text)
		}
		for _, st := range c.Streams {
			watch = append(watch, st.FD)
		}
		state.Containers = append(state.Containers, c)
	}
	if len(watch) > maxWatched {
		return nil
	}
	front, keep, ping := s.engine.herald.asleep()
	state.Front = front
	b, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("encode state: %w", err)
	}
	if err := store.WriteVolatile(sleepFile(s.place), b); err != nil {
		return fmt.Errorf("save state: %w", err)
	}
	for _, fd := range append(keep, watch...) {
		if err := inherit(fd, true); err != nil {
			return err
		}
		defer inherit(fd, false)
	}
	release, err := holdStops()
	if err != nil {
		return err
	}
	defer release()
	if len(s.engine.events) > 0 { // the last moment in which a signal was taken
		return nil
	}
	spec := fmt.Sprint(int64(wake)) + " " + strings.Trim(fmt.Sprint(watch), "[]")
	return unix.Exec("/proc/self/exe", os.Args, append(append(os.Environ(), stage.DozeEnv(spec)...), ping...))
}

func (x *container) asleep() (sleeper, error) {
	c := sleeper{
		Name: x.plan.Name, Attempt: x.attempt, PID: x.pid, MountNS: x.mntns,
		UID: x.who.uid, GID: x.who.gid, Groups: x.who.groups,
	}
	for _, st := range x.log.streams {
		if st.ended {
			continue // it would wake us at once
		}
		fd, err := descriptor(st.pipe)
		if err != nil {
			return sleeper{}, err
		}
		c.Streams = append(c.Streams, sleepingStream{Name: st.name, FD: fd, Rest: st.rest})
	}
	return c, nil
}

// descriptor is the number of a file or a socket, which stays as it is.
func descriptor(f interface {
	SyscallConn() (syscall.RawConn, error)
}) (fd uintptr, err error) {
	raw, err := f.SyscallConn()
	if err == nil {
		err = raw.Control(func(n uintptr) { fd = n })
	}
	if err != nil {
		return 0, fmt.Errorf("find descriptor: %w", err)
	}
	return fd, nil
}

// inherit decides whether a program that is executed keeps a descriptor.
func inherit(fd uintptr, keep bool) error {
	flags := unix.FD_CLOEXEC
	if keep {
		flags = 0
	}
	if _, err := unix.FcntlInt(fd, unix.F_SETFD, flags); err != nil {
		return fmt.Errorf("keep descriptor %d: %w", fd, err)
	}
	return nil
}
