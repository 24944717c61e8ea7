package container

import (
	"fmt"
	"os"

	"github.com/opencontainers/runc/libcontainer"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/runner/handoff"
	"github.com/podrun/podrun/runner/output"
	"github.com/podrun/podrun/runner/sandbox"
)

// Recover takes over a container that an earlier supervisor started. others are all recorded instances, r among
// them; take returns a descriptor that pod init holds.
func Recover(s *sandbox.Sandbox, planned *pod.Container, r handoff.RunningInstance, others []handoff.RunningInstance, take func(name string) (*os.File, bool)) (*Container, error) {
	x := &Container{
		Plan: s.WithoutDenied(planned), Attempt: r.Attempt, Broadcaster: output.NewBroadcaster(), Process: r.Process, mntns: r.MountNS,
		Identity: Identity{uid: r.UID, gid: r.GID, groups: r.Groups}, freezer: s.Freezer,
	}
	x.findMountNamespace(s, others)
	x.registerCleanup(s)
	x.loadEnv(s)
	if planned.TerminationMessagePath != "" {
		x.messagePath = x.messageFilePath(s)
	}
	err := x.loadState(s)
	if err == nil && x.Exit == nil { // its filter, for commands in it
		x.confinement, err = loadConfinement(s, x.Plan, x.Libcontainer, r.Filter)
	}
	if err == nil {
		err = x.recoverStreams(s, r.Streams, take)
	}
	return x, err
}

// loadState loads libcontainer's state of a running container. If the state is damaged, podrun cannot operate
// the container any more: loadState kills it, and it is restarted like any killed container.
func (x *Container) loadState(s *sandbox.Sandbox) (err error) {
	exits := s.Handoff.Exits
	exits.Track(x.Process)
	x.Libcontainer, err = libcontainer.Load(s.Pod.LibcontainerDir(), x.ID())
	if err == nil || !handoff.IsDamaged(err) {
		return err
	}
	err = fmt.Errorf("recover container %s: %w", x.Plan.Name, err)
	fmt.Fprintln(os.Stderr, err)
	_ = x.Kill(unix.SIGKILL) // it may have exited; its exit is reported then
	x.Exit = NewExit(exits.Wait(x.Process))
	x.Exit.Message = "it was killed because its record was damaged: " + err.Error()
	return nil
}

// Leftover returns the Container of an instance that has exited, for its Remove. It loads libcontainer's state,
// if that still exists, so that Remove removes the cgroup, too: its counters would be taken for the next
// instance's.
func Leftover(s *sandbox.Sandbox, planned *pod.Container, attempt int) *Container {
	x := &Container{Plan: planned, Attempt: attempt}
	x.registerCleanup(s)
	x.Libcontainer, _ = libcontainer.Load(s.Pod.LibcontainerDir(), x.ID())
	return x
}

// UndoStart removes what exists of an instance whose start was not completed.
func UndoStart(s *sandbox.Sandbox, planned *pod.Container, attempt int) error {
	partial := &Container{Plan: planned, Attempt: attempt}
	partial.registerCleanup(s)
	return partial.Cleanup.Undo()
}
