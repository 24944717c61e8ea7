package runner

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/stage"
	"github.com/podrun/podrun/lifecycle"
)

// controlName is the control socket's among the descriptors that the keeper holds; those
// of containers have a dot.
const controlName = "control"

// adoption is how a supervisor takes up what another has left.
type adoption struct {
	engine *engine
	was    *stage.Inherited
	state  state
	known  lifecycle.Observed
	again  []lifecycle.Action // that were decided and may not have been carried out
	taken  []*container
}

// adopt takes up a pod where another supervisor has dozed off or died, and returns what
// is known of it. What was being made when it died is undone and ordered again; what may
// have run is taken up or, if it has ended, told.
func (s *supervisor) adopt(was *stage.Inherited) (lifecycle.Observed, error) {
	e := s.engine
	left, known, err := e.estate.inherit()
	if err != nil {
		return known, hopeless{err}
	}
	a := &adoption{engine: e, was: was, state: left, known: known}
	if s.listener, err = a.listener(); err != nil {
		return known, err
	}
	if !was.Died {
		s.quiet = nextQuiet(left.Sleep)
	}
	if err := a.front(); err != nil {
		return known, err
	}
	e.warnings, e.cgroup = left.Warnings, left.Cgroup
	e.listen()
	if err := a.ports(); err != nil {
		return known, err
	}
	if err := a.sandbox(); err != nil {
		return known, err
	}
	if err := a.containers(); err != nil {
		return known, err
	}
	a.closeRest()
	e.estate.ends.adopted()
	if box := e.sandbox; box != nil {
		e.guard(box)
		if was.Died { // who has told it that an object has changed may not have been heard
			go e.refresh()
		}
		for _, x := range a.taken { // all runs are known by now: an end takes one away
			go e.follow(box, x)
		}
	}
	if was.Died {
		a.known.Apply(e.plan, lifecycle.Event{At: readClocks(), Kind: lifecycle.Adopted, Seed: rand.Uint64()})
	}
	e.Record(&a.known)
	for _, order := range a.again {
		e.Do(order)
	}
	return a.known, nil
}

func (a *adoption) take(name string) (*os.File, bool) {
	fd, ok := a.was.Files[name]
	if !ok {
		return nil, false
	}
	delete(a.was.Files, name)
	return os.NewFile(fd, name), true
}

// closeRest lets go of what belonged to starts that are undone.
func (a *adoption) closeRest() {
	for name, fd := range a.was.Files {
		unix.Close(int(fd))
		a.engine.estate.keeper.Drop(name)
	}
}

func (a *adoption) listener() (*net.UnixListener, error) {
	file, ok := a.take(controlName)
	if !ok {
		return nil, hopeless{fmt.Errorf("take up the control socket: the keeper has none")}
	}
	defer file.Close()
	l, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("take up the control socket: %w", err)
	}
	u, ok := l.(*net.UnixListener)
	if !ok {
		return nil, hopeless{fmt.Errorf("take up the control socket: it is a %T", l)}
	}
	u.SetUnlinkOnClose(false)
	return u, nil
}

// front takes up who serves systemd.
func (a *adoption) front() error {
	socket, ok := a.take(frontName)
	output, _ := a.take(outputName)
	defer closeFiles(socket, output)
	if !ok || a.state.Front == nil {
		return nil
	}
	if !a.was.Died {
		a.engine.herald.said = a.state.Sleep.Said
	}
	files := []*os.File{socket}
	if output != nil {
		files = append(files, output)
	}
	return a.engine.herald.attach(a.state.Front, files)
}

// ports takes up those of the host.
func (a *adoption) ports() error {
	for _, p := range a.engine.plan.Published() {
		name := hostPort(p).String()
		file, ok := a.take(keptPort(name))
		if !ok {
			continue
		}
		if err := a.engine.published.hold(name, file); err != nil {
			return err
		}
	}
	for name := range a.was.Files {
		if port, ok := strings.CutPrefix(name, nodePrefix); ok {
			file, _ := a.take(name)
			a.engine.published.inherit(port, file)
		}
	}
	return nil
}

// sandbox takes the sandbox up, or what there is of it.
func (a *adoption) sandbox() error {
	switch a.known.Sandbox {
	case lifecycle.SandboxNone, lifecycle.SandboxDown:
		return nil
	case lifecycle.SandboxCreating:
		a.sweep()
		half := a.engine.newSandbox(a.engine.plan, a.known.Attempt)
		if err := half.adopt(process{}, ""); err != nil {
			return err
		}
		a.remains(half)
		if err := half.remove(); err != nil {
			return fmt.Errorf("undo half a sandbox: %w", err)
		}
		a.again = append(a.again, lifecycle.Action{Kind: lifecycle.CreateSandbox, Attempt: a.known.Attempt})
		return nil
	case lifecycle.SandboxRemoving:
		a.again = append(a.again, lifecycle.Action{Kind: lifecycle.RemoveSandbox, Attempt: a.known.Attempt})
	}
	box := a.engine.newSandbox(a.engine.plan, a.known.Attempt)
	a.engine.sandbox = box
	reconnect := box.reconnect
	if a.known.Sandbox == lifecycle.SandboxRemoving {
		reconnect = box.reconnectToRemove
	}
	if err := reconnect(a.take); err != nil {
		return fmt.Errorf("take up the pod's network: %w", err)
	}
	if a.known.Sandbox != lifecycle.SandboxRemoving {
		if err := box.publish(); err != nil {
			a.engine.warn(err.Error())
		}
		if a.was.Died || len(a.engine.published.nodes) > 0 {
			if err := box.leadNodes(); err != nil {
				a.engine.warn(err.Error())
			}
		}
	}
	if err := box.adopt(a.state.Pause, a.state.Cgroup); err != nil || box.cgroup == nil {
		return err
	}
	return box.freezer.takeUp(box.cgroup, a.known.Pause.State)
}

// sweep ends what no successor knows of a supervisor that has died.
func (a *adoption) sweep() {
	if !a.was.Died {
		return
	}
	known := map[process]bool{a.state.Pause: true}
	spared := map[string]bool{}
	for _, r := range a.state.Runs {
		known[r.process] = true
		if a.engine.plan.HostPID {
			spared[r.MountNS] = true
		}
	}
	sweep(known, spared)
}

// hopeless is an error after which no other supervisor could take the pod up either.
type hopeless struct{ error }

func (h hopeless) Unwrap() error { return h.error }
