package runner

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/stage/trampoline"
	"github.com/podrun/podrun/lifecycle"
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
	if a.was.Died {
		r.Streams = nil // they are of an earlier sleep
	}
	x, err := adoptContainer(e.sandbox, planned, r, a.state.Runs, a.take)
	if err != nil {
		return fmt.Errorf("take up container %s: %w", r.Name, err)
	}
	e.runs[r.Name] = &run{container: x}
	a.taken = append(a.taken, x)
	a.tellAgain(x, r)
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
		remnant(s, planned, in.Attempt).remove()
		a.engine.estate.removed(in)
	}
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
	if err := undoStart(a.engine.sandbox, planned, c.Attempt); err != nil {
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
