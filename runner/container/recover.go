package container

import (
	"fmt"
	"os"

	"github.com/opencontainers/runc/libcontainer"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/runner/handoff"
	"github.com/podrun/podrun/runner/output"
	"github.com/podrun/podrun/runner/sandbox"
)

// Recover makes the value of a container again that a supervisor before this one has
// started. others are all that it has left; take gives what the keeper has of it.
func Recover(s *sandbox.Sandbox, planned *pod.Container, r handoff.Run, others []handoff.Run, take func(name string) (*os.File, bool)) (*Container, error) {
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

// loadState finds what libcontainer has recorded of a container that runs. One of which that
// cannot be read can be asked for nothing any more: it is ended, and restarted as one that
// was killed.
func (x *Container) loadState(s *sandbox.Sandbox) (err error) {
	ends := s.Handoff.Exits
	ends.Track(x.Process)
	x.Libcontainer, err = libcontainer.Load(s.Store.LibcontainerDir(), x.ID())
	if err == nil || !handoff.IsDamaged(err) {
		return err
	}
	err = fmt.Errorf("recover container %s: %w", x.Plan.Name, err)
	fmt.Fprintln(os.Stderr, err)
	_ = x.Kill(unix.SIGKILL) // it may have ended: then its end is told
	x.Exit = NewExit(ends.Wait(x.Process))
	x.Exit.Message = "it was killed because its record was damaged: " + err.Error()
	return nil
}

// Leftover is an instance that has ended. What libcontainer knows of it, if it still does, leads
// to its cgroup, whose counts must not be taken for the next instance's.
func Leftover(s *sandbox.Sandbox, planned *pod.Container, attempt int) *Container {
	x := &Container{Plan: planned, Attempt: attempt}
	x.registerCleanup(s)
	x.Libcontainer, _ = libcontainer.Load(s.Store.LibcontainerDir(), x.ID())
	return x
}

// UndoStart removes what there is of an instance that was not started, however far it came.
func UndoStart(s *sandbox.Sandbox, planned *pod.Container, attempt int) error {
	half := &Container{Plan: planned, Attempt: attempt}
	half.registerCleanup(s)
	return half.Cleanup.Undo()
}
