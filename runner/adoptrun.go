package runner

import (
	"fmt"
	"os"
	"time"

	"github.com/opencontainers/runc/libcontainer"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/stage/trampoline"
	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/pod"
)

// containers takes up those that run, or did when last seen.
func (a *adoption) containers() error {
	if a.engine.sandbox == nil {
		return nil
	}
	var runs []savedRun
	for _, r := range a.state.Runs {
		if live(&a.known, r.Name, r.Attempt) && a.hasRun(&r) {
			runs = append(runs, r)
		}
	}
	a.state.Runs = runs
	a.sweep()
	a.engine.estate.record(func(s *state) { s.Runs = runs })
	a.remains(a.engine.sandbox)
	for _, r := range runs {
		if err := a.container(r); err != nil {
			return err
		}
	}
	for name, c := range a.known.Containers {
		if live(&a.known, name, c.Attempt) && a.engine.runs[name] == nil {
			if err := a.startAgain(name, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasRun says whether a process that was recorded has got so far as to execute the
// container's program. One that has not is stopped: it must not, from here on.
func (a *adoption) hasRun(r *savedRun) bool {
	if !a.was.Died || a.known.Containers[r.Name].State == lifecycle.RunRunning {
		return true
	}
	_ = r.kill(unix.SIGSTOP) // it may have gone
	st, ok := stat(r.PID)
	for begun := bootTime(); ok && st.process == r.process && st.state != 'T' && st.state != 'Z' && bootTime()-begun < tellTime; {
		time.Sleep(time.Millisecond)
		st, ok = stat(r.PID)
	}
	if ok && st.process == r.process && st.state != 'Z' {
		if !unstarted(st.name) {
			unix.Kill(r.PID, unix.SIGCONT)
		}
		return !unstarted(st.name)
	}
	ends := a.engine.estate.ends
	ends.adopt(r.process)
	x, _ := ends.wait(r.process) // of the keeper's there is no error
	if unstarted(x.Name) {
		ends.forget(r.process)
	}
	return !unstarted(x.Name)
}

// initName is how libcontainer calls a process that it makes.
const initName = "runc:[2:INIT]"

// unstarted says whether a process of this name has yet to execute its container's program,
// or has failed to: then it is made to once more, and tells how.
func unstarted(name string) bool { return name == initName || name == trampoline.Name }

// container makes a running container's value again.
func (a *adoption) container(r savedRun) error {
	e := a.engine
	planned, ok := e.plan.Container(r.Name)
	if !ok {
		return hopeless{fmt.Errorf("take up container %s: the plan has none", r.Name)}
	}
	x := &container{
		plan: planned, attempt: r.Attempt, audience: newAudience(), process: r.process, mntns: r.MountNS,
		who: identity{uid: r.UID, gid: r.GID, groups: r.Groups},
	}
	if e.sandbox != nil {
		x.plan, x.freezer = e.sandbox.withheld(planned), e.sandbox.freezer
	}
	x.findMountNamespace(e.sandbox, a.state.Runs)
	x.cleanUpLater(e.sandbox)
	x.adoptEnv(e.sandbox)
	if planned.TerminationMessagePath != "" {
		x.message = x.messageFile(e.sandbox)
	}
	if err := a.load(x); err != nil {
		return err
	}
	if err := a.confinement(x, r.Filter); err != nil {
		return err
	}
	if err := a.takeOutputs(x, a.rests(r)); err != nil {
		return err
	}
	e.runs[r.Name] = &run{container: x}
	a.taken = append(a.taken, x)
	a.tellAgain(x, r)
	return nil
}

// load finds what libcontainer has recorded of a container that runs. One of which that
// cannot be read can be asked for nothing any more: it is ended, and restarted as one that
// was killed.
func (a *adoption) load(x *container) error {
	ends := a.engine.estate.ends
	ends.adopt(x.process)
	var err error
	x.ct, err = libcontainer.Load(a.engine.sandbox.store.LibcontainerDir(), x.id())
	if err == nil {
		return nil
	}
	err = fmt.Errorf("take up container %s: %w", x.plan.Name, err)
	if !damaged(err) {
		return err
	}
	fmt.Fprintln(os.Stderr, err)
	_ = x.kill(unix.SIGKILL) // it may have ended: then its end is told
	x.end = endOf(ends.wait(x.process))
	x.end.Message = "it was killed, as its record was damaged: " + err.Error()
	return nil
}

// confinement finds the filter of a container that runs, for commands in it.
func (a *adoption) confinement(x *container, key string) (err error) {
	if x.end != nil {
		return nil
	}
	if x.confinement, err = a.engine.sandbox.confined(x.plan, x.ct, key); err != nil {
		return fmt.Errorf("take up container %s: %w", x.plan.Name, err)
	}
	return nil
}

// tellAgain has what was decided about a running container carried out, where it may
// not have been, and tells of a start that was not told.
func (a *adoption) tellAgain(x *container, r savedRun) {
	c := a.known.Containers[r.Name]
	order := lifecycle.Action{Container: r.Name, Attempt: r.Attempt}
	switch {
	case c.State == lifecycle.RunStarting:
		a.known.Apply(a.engine.plan, lifecycle.Event{
			At: readClocks(), Kind: lifecycle.Started, Container: r.Name, Attempt: r.Attempt,
			ContainerID: containerID(a.engine.plan, x), User: x.who.user(),
		})
	case c.KillIssued:
		order.Kind = lifecycle.KillContainer
		a.again = append(a.again, order)
	case c.StopIssued != nil && !r.Stopped:
		order.Kind = lifecycle.StopContainer
		a.again = append(a.again, order)
	}
}

// remains removes what is left of instances that do not run. One that is to be started is
// seen to by startAgain.
func (a *adoption) remains(s *sandbox) {
	for _, in := range a.state.Remains {
		c := a.known.Containers[in.Name]
		planned, ok := a.engine.plan.Container(in.Name)
		if !ok || c != nil && c.Attempt == in.Attempt && live(&a.known, in.Name, in.Attempt) {
			continue
		}
		a.remnant(s, planned, in.Attempt).remove()
		a.engine.estate.removed(in)
	}
}

// remnant is an instance that has ended. What libcontainer knows of it, if it still does, leads
// to its cgroup, whose counts must not be taken for the next instance's.
func (a *adoption) remnant(s *sandbox, planned *pod.Container, attempt int) *container {
	x := &container{plan: planned, attempt: attempt}
	x.cleanUpLater(s)
	x.ct, _ = libcontainer.Load(s.store.LibcontainerDir(), x.id())
	return x
}

// startAgain orders a start once more that did not come about, and undoes what there is
// of it.
func (a *adoption) startAgain(name string, c *lifecycle.Container) error {
	planned, ok := a.engine.plan.Container(name)
	if !ok {
		return hopeless{fmt.Errorf("take up container %s: the plan has none", name)}
	}
	if c.State == lifecycle.RunRunning { // never recorded: there was no room
		a.known.Apply(a.engine.plan, lifecycle.Event{
			At: readClocks(), Kind: lifecycle.Exited, Container: name, Attempt: c.Attempt,
			ExitCode: 137, Reason: "ContainerStatusUnknown", Message: "nothing is known of it",
		})
		return nil
	}
	half := &container{plan: planned, attempt: c.Attempt}
	half.cleanUpLater(a.engine.sandbox)
	if err := half.cleanup.Undo(); err != nil {
		return fmt.Errorf("undo the start of container %s: %w", name, err)
	}
	if a.known.Ending != nil {
		a.known.Apply(a.engine.plan, lifecycle.Event{
			At: readClocks(), Kind: lifecycle.StartFailed, Container: name, Attempt: c.Attempt,
			Reason: "StartError", ExitCode: 137, Message: "its start was given up: the pod ends",
		})
		return nil
	}
	a.again = append(a.again, lifecycle.Action{Kind: lifecycle.StartContainer, Container: name, Attempt: c.Attempt})
	return nil
}
