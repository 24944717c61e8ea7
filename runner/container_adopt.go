package runner

import (
	"fmt"
	"os"

	"github.com/opencontainers/runc/libcontainer"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/pod"
)

// adoptContainer makes the value of a container again that a supervisor before this one has
// started. others are all that it has left; take gives what the keeper has of it.
func adoptContainer(s *sandbox, planned *pod.Container, r savedRun, others []savedRun, take func(name string) (*os.File, bool)) (*container, error) {
	x := &container{
		plan: s.withheld(planned), attempt: r.Attempt, audience: newAudience(), process: r.process, mntns: r.MountNS,
		who: identity{uid: r.UID, gid: r.GID, groups: r.Groups}, freezer: s.freezer,
	}
	x.findMountNamespace(s, others)
	x.cleanUpLater(s)
	x.adoptEnv(s)
	if planned.TerminationMessagePath != "" {
		x.message = x.messageFile(s)
	}
	err := x.load(s)
	if err == nil && x.end == nil { // its filter, for commands in it
		x.confinement, err = confined(s, x.plan, x.ct, r.Filter)
	}
	if err == nil {
		err = x.takeOutputs(s, r.Streams, take)
	}
	return x, err
}

// load finds what libcontainer has recorded of a container that runs. One of which that
// cannot be read can be asked for nothing any more: it is ended, and restarted as one that
// was killed.
func (x *container) load(s *sandbox) (err error) {
	ends := s.estate.ends
	ends.adopt(x.process)
	x.ct, err = libcontainer.Load(s.store.LibcontainerDir(), x.id())
	if err == nil || !damaged(err) {
		return err
	}
	err = fmt.Errorf("take up container %s: %w", x.plan.Name, err)
	fmt.Fprintln(os.Stderr, err)
	_ = x.kill(unix.SIGKILL) // it may have ended: then its end is told
	x.end = endOf(ends.wait(x.process))
	x.end.Message = "it was killed, as its record was damaged: " + err.Error()
	return nil
}

// remnant is an instance that has ended. What libcontainer knows of it, if it still does, leads
// to its cgroup, whose counts must not be taken for the next instance's.
func remnant(s *sandbox, planned *pod.Container, attempt int) *container {
	x := &container{plan: planned, attempt: attempt}
	x.cleanUpLater(s)
	x.ct, _ = libcontainer.Load(s.store.LibcontainerDir(), x.id())
	return x
}

// undoStart removes what there is of an instance that was not started, however far it came.
func undoStart(s *sandbox, planned *pod.Container, attempt int) error {
	half := &container{plan: planned, attempt: attempt}
	half.cleanUpLater(s)
	return half.cleanup.Undo()
}
