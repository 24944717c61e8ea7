package runner

import (
	"encoding/json"
	"fmt"
	"net"
	"os"

	"github.com/opencontainers/runc/libcontainer"

	"github.com/podrun/podrun/cgroups"
	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/pod"
)

// awake makes the supervisor again that dozed off.
func awake(plan *pod.Plan, s *supervisor) (lifecycle.Observed, error) {
	b, err := os.ReadFile(sleepFile(s.place))
	if err != nil {
		return lifecycle.Observed{}, fmt.Errorf("read what the supervisor has left: %w", err)
	}
	var state asleep
	if err := json.Unmarshal(b, &state); err != nil {
		return lifecycle.Observed{}, fmt.Errorf("read what the supervisor has left: %w", err)
	}
	if s.listener, err = wokenListener(state.Listener); err != nil {
		return lifecycle.Observed{}, err
	}
	if err := s.engine.herald.awake(state.Front); err != nil {
		return lifecycle.Observed{}, err
	}
	s.quiet = min(2*state.Quiet, lastDoze)
	switch now := readClocks().Boot; {
	case now-state.Since > soon:
		s.quiet = dozeAfter()
	case state.Wake > 0 && now >= state.Wake:
		s.quiet = state.Quiet // it woke when it had meant to: the pod is as quiet as before
	}
	box := newSandbox(plan, s.place, s.engine.herald)
	if err := box.wake(state); err != nil {
		return lifecycle.Observed{}, err
	}
	s.engine.sandbox, s.engine.warnings = box, state.Warnings
	var woken []*container
	for _, c := range state.Containers {
		x, err := wakeContainer(plan, box, c)
		if err != nil {
			return lifecycle.Observed{}, err
		}
		s.engine.runs[c.Name] = &run{container: x}
		woken = append(woken, x)
	}
	s.engine.guard(box)
	for _, x := range woken { // all runs are known by now: an end takes one away
		go s.engine.follow(box, x)
	}
	return state.Observed, nil
}

func wokenListener(fd uintptr) (*net.UnixListener, error) {
	file := os.NewFile(fd, "control socket")
	defer file.Close()
	l, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("take up the control socket: %w", err)
	}
	u, ok := l.(*net.UnixListener)
	if !ok {
		return nil, fmt.Errorf("take up the control socket: descriptor %d is a %T", fd, l)
	}
	u.SetUnlinkOnClose(false)
	return u, nil
}

// wake makes a sandbox's value again for what there is.
func (s *sandbox) wake(state asleep) (err error) {
	s.pausePID = state.PausePID
	if state.Cgroup != "" {
		if s.cgroup, err = cgroups.Reopen(state.Cgroup); err != nil {
			return err
		}
	}
	for _, step := range s.steps() {
		s.undo.Push("remove "+step.name, step.undo)
	}
	return nil
}

// wakeContainer makes a running container's value again.
func wakeContainer(plan *pod.Plan, s *sandbox, c sleeper) (*container, error) {
	planned, ok := plan.Container(c.Name)
	if !ok {
		return nil, fmt.Errorf("take up container %s: the plan has none", c.Name)
	}
	x := &container{
		plan: planned, attempt: c.Attempt, pid: c.PID, mntns: c.MountNS,
		who: identity{uid: c.UID, gid: c.GID, groups: c.Groups},
	}
	x.cleanUpLater(s)
	if planned.TerminationMessagePath != "" {
		x.message = x.messageFile(s)
	}
	var err error
	if x.ct, err = libcontainer.Load(s.store.LibcontainerDir(), x.id()); err != nil {
		return nil, fmt.Errorf("take up container %s: %w", c.Name, err)
	}
	if x.log, err = openLog(s.logPlace(c.Name, c.Attempt), s.shower(c.Name)); err != nil {
		return nil, err
	}
	var streams []*stream
	for _, st := range c.Streams {
		if err := inherit(st.FD, false); err != nil {
			return nil, err
		}
		streams = append(streams, &stream{name: st.Name, pipe: os.NewFile(st.FD, st.Name), rest: st.Rest})
	}
	return x, x.log.takeUp(streams...)
}
