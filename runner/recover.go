package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/runner/clock"
	"github.com/podrun/podrun/runner/container"
	"github.com/podrun/podrun/runner/handoff"
	"github.com/podrun/podrun/runner/network"
	"github.com/podrun/podrun/runner/sandbox"
)

// recovery is the takeover of a pod from an earlier supervisor.
type recovery struct {
	engine    *engine
	inherited *podinit.Inherited
	state     handoff.State
	observed  lifecycle.Observed
	repeat    []lifecycle.Action // actions that were decided and may not have been carried out
	recovered []*container.Container
}

// recover takes over a pod whose supervisor has hibernated or died, and returns what is observed. It undoes
// starts that were not completed, and issues them again. A container whose program may have been executed is
// taken over; if it has exited, its exit is emitted.
func (s *supervisor) recover(inherited *podinit.Inherited) (lifecycle.Observed, error) {
	e := s.engine
	saved, known, err := e.handoff.Load()
	if errors.Is(err, fs.ErrNotExist) {
		return known, errSandboxLost
	}
	if err != nil {
		return known, unrecoverable{err}
	}
	rec := &recovery{engine: e, inherited: inherited, state: saved, observed: known}
	if s.listener, err = rec.takeListener(); err != nil {
		return known, err
	}
	if !inherited.Died {
		s.idleAfter = nextIdleTime(saved.Hibernation)
		last, err := inherited.LatestSuccesses()
		if err != nil {
			return known, err
		}
		rec.observed.ApplyDelegated(e.plan, saved.Hibernation.Probes, last)
	}
	if err := rec.takeNotifier(); err != nil {
		return known, err
	}
	e.warnings, e.cgroup = saved.Warnings, saved.Cgroup
	e.listenPodInit()
	if err := rec.takeHostPorts(); err != nil {
		return known, err
	}
	if err := rec.recoverSandbox(); err != nil {
		return known, err
	}
	if err := rec.recoverContainers(); err != nil {
		return known, err
	}
	rec.closeUnused()
	e.handoff.Exits.ForgetUntracked()
	if box := e.sandbox; box != nil {
		e.watchPauseProcess(box)
		if inherited.Died { // a notification of a changed object may have been lost
			go e.refreshVolumes()
		}
		for _, x := range rec.recovered { // all instances are registered by now: an exit removes one
			go e.awaitExit(box, x)
		}
	}
	if inherited.Died {
		rec.observed.Apply(e.plan, lifecycle.Event{At: clock.Now(), Kind: lifecycle.Recovered, Seed: rand.Uint64()})
	}
	e.Save(&rec.observed)
	for _, action := range rec.repeat {
		e.Do(action)
	}
	return rec.observed, nil
}

func (rec *recovery) takeFile(name string) (*os.File, bool) {
	fd, ok := rec.inherited.Files[name]
	if !ok {
		return nil, false
	}
	delete(rec.inherited.Files, name)
	return os.NewFile(fd, name), true
}

// closeUnused closes the descriptors of starts that are undone.
func (rec *recovery) closeUnused() {
	for name, fd := range rec.inherited.Files {
		unix.Close(int(fd))
		rec.engine.handoff.PodInit.Drop(name)
	}
}

func (rec *recovery) takeListener() (*net.UnixListener, error) {
	file, ok := rec.takeFile(protocol.KeptControl)
	if !ok {
		return nil, unrecoverable{fmt.Errorf("recover the control socket: the pod init has none")}
	}
	defer file.Close()
	l, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("recover the control socket: %w", err)
	}
	u, ok := l.(*net.UnixListener)
	if !ok {
		return nil, unrecoverable{fmt.Errorf("recover the control socket: it is a %T", l)}
	}
	u.SetUnlinkOnClose(false)
	return u, nil
}

// takeNotifier takes over the connection to the systemd notify target.
func (rec *recovery) takeNotifier() error {
	socket, ok := rec.takeFile(protocol.KeptNotify)
	output, _ := rec.takeFile(protocol.KeptOutput)
	defer container.CloseFiles(socket, output)
	if !ok || rec.state.Notify == nil {
		return nil
	}
	if !rec.inherited.Died {
		rec.engine.notifier.LastStatus = rec.state.Hibernation.NotifyStatus
	}
	files := []*os.File{socket}
	if output != nil {
		files = append(files, output)
	}
	return rec.engine.notifier.SetTarget(rec.state.Notify, files)
}

// takeHostPorts takes over the listeners of the host ports and node ports.
func (rec *recovery) takeHostPorts() error {
	for _, p := range rec.engine.plan.Published() {
		name := network.HostPort(p).String()
		file, ok := rec.takeFile(protocol.KeptPort + name)
		if !ok {
			continue
		}
		if err := rec.engine.hostPorts.Keep(name, file); err != nil {
			return err
		}
	}
	for name := range rec.inherited.Files {
		if port, ok := strings.CutPrefix(name, protocol.KeptNodePort); ok {
			file, _ := rec.takeFile(name)
			rec.engine.hostPorts.RecoverNodePort(port, file)
		}
	}
	return nil
}

// recoverSandbox takes over the sandbox, or what exists of it.
func (rec *recovery) recoverSandbox() error {
	switch rec.observed.Sandbox {
	case lifecycle.SandboxNone, lifecycle.SandboxDown:
		return nil
	case lifecycle.SandboxCreating:
		rec.killUnknown()
		partial := rec.engine.newSandbox(rec.engine.plan, rec.observed.Attempt)
		if err := partial.Recover(procfs.Process{}, ""); err != nil {
			return err
		}
		rec.removeLeftovers(partial)
		if err := partial.Remove(); err != nil {
			return fmt.Errorf("undo a partial sandbox: %w", err)
		}
		rec.repeat = append(rec.repeat, lifecycle.Action{Kind: lifecycle.CreateSandbox, Attempt: rec.observed.Attempt})
		return nil
	case lifecycle.SandboxRemoving:
		rec.repeat = append(rec.repeat, lifecycle.Action{Kind: lifecycle.RemoveSandbox, Attempt: rec.observed.Attempt})
	}
	box := rec.engine.newSandbox(rec.engine.plan, rec.observed.Attempt)
	rec.engine.sandbox = box
	reconnect := box.Reconnect
	if rec.observed.Sandbox == lifecycle.SandboxRemoving {
		reconnect = box.ReconnectForRemoval
	}
	if err := reconnect(rec.takeFile); err != nil {
		return fmt.Errorf("recover the pod's network: %w", err)
	}
	if rec.observed.Sandbox != lifecycle.SandboxRemoving {
		if err := box.ServePorts(); err != nil {
			rec.engine.warn(err.Error())
		}
		if rec.inherited.Died || len(rec.engine.hostPorts.NodePorts) > 0 {
			if err := box.UpdateNodePorts(); err != nil {
				rec.engine.warn(err.Error())
			}
		}
	}
	if err := box.Recover(rec.state.PauseProcess, rec.state.Cgroup); err != nil || box.Cgroup == nil {
		return err
	}
	return box.Freezer.Recover(box.Cgroup, rec.observed.Pause.State)
}

// killUnknown kills the processes that a dead supervisor has started and not recorded.
func (rec *recovery) killUnknown() {
	if !rec.inherited.Died {
		return
	}
	known := map[procfs.Process]bool{rec.state.PauseProcess: true}
	spared := map[string]bool{}
	for _, r := range rec.state.Running {
		known[r.Process] = true
		if rec.engine.plan.HostPID {
			spared[r.MountNS] = true
		}
	}
	killUnknownChildren(known, spared)
}

// errSandboxLost means that the pod's runtime directory is gone: no supervisor can recover the containers. The pod
// continues in another sandbox.
var errSandboxLost = errors.New("the pod's runtime directory is lost: its containers are started again in another sandbox")

// unrecoverable is an error after which no other supervisor can recover the pod either.
type unrecoverable struct{ error }

func (e unrecoverable) Unwrap() error { return e.error }

// recoverContainers takes over the containers that are recorded as running; some may have exited since.
func (rec *recovery) recoverContainers() error {
	if rec.engine.sandbox == nil {
		return nil
	}
	var taken []handoff.RunningInstance
	for _, r := range rec.state.Running {
		if handoff.IsLive(&rec.observed, r.Name, r.Attempt) && rec.hasExecuted(&r) {
			taken = append(taken, r)
		}
	}
	rec.state.Running = taken
	rec.killUnknown()
	rec.engine.handoff.Update(func(s *handoff.State) { s.Running = taken })
	rec.removeLeftovers(rec.engine.sandbox)
	for _, r := range taken {
		if err := rec.recoverContainer(r); err != nil {
			return err
		}
	}
	for name, c := range rec.observed.Containers {
		if handoff.IsLive(&rec.observed, name, c.Attempt) && rec.engine.instances[name] == nil {
			if err := rec.restartUnstarted(name, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasExecuted reports whether a recorded process has executed the container's program. A process that has
// not is left suspended (SIGSTOP), so that it cannot execute the program later.
func (rec *recovery) hasExecuted(r *handoff.RunningInstance) bool {
	if !rec.inherited.Died || rec.observed.Containers[r.Name].State == lifecycle.RunRunning {
		return true
	}
	_ = r.Kill(unix.SIGSTOP) // it may have exited
	st, ok := procfs.Lookup(r.PID)
	for begun := clock.Boot(); ok && st.Process == r.Process && st.State != 'T' && st.State != 'Z' && clock.Boot()-begun < suspendTimeout; {
		time.Sleep(time.Millisecond)
		st, ok = procfs.Lookup(r.PID)
	}
	if ok && st.Process == r.Process && st.State != 'Z' {
		if !isPreExec(st.Comm) {
			unix.Kill(r.PID, unix.SIGCONT)
		}
		return !isPreExec(st.Comm)
	}
	exits := rec.engine.handoff.Exits
	exits.Track(r.Process)
	x, _ := exits.Wait(r.Process) // Wait returns no error for pod init's children
	if isPreExec(x.Name) {
		exits.Forget(r.Process)
	}
	return !isPreExec(x.Name)
}

// suspendTimeout is how long hasExecuted waits for SIGSTOP to take effect: a process that waits for a disk
// does not stop.
const suspendTimeout = 5 * time.Second

// initName is the name that libcontainer gives to a process it makes.
const initName = "runc:[2:INIT]"

// isPreExec reports whether a process of this name has not executed its container's program, or has failed
// to. After a failure the start is repeated, which reports the error again.
func isPreExec(name string) bool { return name == initName || name == protocol.CommShim }

// recoverContainer takes over a running container.
func (rec *recovery) recoverContainer(r handoff.RunningInstance) error {
	e := rec.engine
	planned, ok := e.plan.Container(r.Name)
	if !ok {
		return unrecoverable{fmt.Errorf("recover container %s: the plan has none", r.Name)}
	}
	if rec.inherited.Died {
		r.Streams = nil // they belong to an earlier hibernation
	}
	x, err := container.Recover(e.sandbox, planned, r, rec.state.Running, rec.takeFile)
	if err != nil {
		return fmt.Errorf("recover container %s: %w", r.Name, err)
	}
	e.instances[r.Name] = &instance{container: x}
	rec.recovered = append(rec.recovered, x)
	rec.repeatActions(x, r)
	return nil
}

// repeatActions repeats the actions on a running container that may not have been carried out, and emits a
// Started event that was not emitted.
func (rec *recovery) repeatActions(x *container.Container, r handoff.RunningInstance) {
	c := rec.observed.Containers[r.Name]
	action := lifecycle.Action{Container: r.Name, Attempt: r.Attempt}
	switch {
	case c.State == lifecycle.RunStarting:
		rec.observed.Apply(rec.engine.plan, lifecycle.Event{
			At: clock.Now(), Kind: lifecycle.Started, Container: r.Name, Attempt: r.Attempt,
			ContainerID: container.FullID(rec.engine.plan, x), User: x.Identity.PodUser(),
		})
	case c.KillIssued:
		action.Kind = lifecycle.KillContainer
		rec.repeat = append(rec.repeat, action)
	case c.StopIssued != nil && !r.Stopped:
		action.Kind = lifecycle.StopContainer
		rec.repeat = append(rec.repeat, action)
	}
}

// removeLeftovers removes what is left of instances that do not run, except of instances that are being
// started: restartUnstarted undoes these.
func (rec *recovery) removeLeftovers(s *sandbox.Sandbox) {
	for _, in := range rec.state.Leftovers {
		c := rec.observed.Containers[in.Name]
		planned, ok := rec.engine.plan.Container(in.Name)
		if !ok || c != nil && c.Attempt == in.Attempt && handoff.IsLive(&rec.observed, in.Name, in.Attempt) {
			continue
		}
		container.Leftover(s, planned, in.Attempt).Remove()
		rec.engine.handoff.ForgetInstance(in)
	}
}

// restartUnstarted undoes a start that was not completed, and issues it again.
func (rec *recovery) restartUnstarted(name string, c *lifecycle.Container) error {
	planned, ok := rec.engine.plan.Container(name)
	if !ok {
		return unrecoverable{fmt.Errorf("recover container %s: the plan has none", name)}
	}
	if c.State == lifecycle.RunRunning { // its process was never recorded: the disk was full
		rec.observed.Apply(rec.engine.plan, lifecycle.Event{
			At: clock.Now(), Kind: lifecycle.Exited, Container: name, Attempt: c.Attempt,
			ExitCode: 137, Reason: "ContainerStatusUnknown", Message: "there is no record of it",
		})
		return nil
	}
	if err := container.UndoStart(rec.engine.sandbox, planned, c.Attempt); err != nil {
		return fmt.Errorf("undo the start of container %s: %w", name, err)
	}
	if rec.observed.Ending != nil {
		rec.observed.Apply(rec.engine.plan, lifecycle.Event{
			At: clock.Now(), Kind: lifecycle.StartFailed, Container: name, Attempt: c.Attempt,
			Reason: "StartError", ExitCode: 137, Message: "its start was canceled: the pod is stopping",
		})
		return nil
	}
	rec.repeat = append(rec.repeat, lifecycle.Action{Kind: lifecycle.StartContainer, Container: name, Attempt: c.Attempt})
	return nil
}

// killUnknownChildren kills the processes of unfinished work of a dead supervisor: starts of containers,
// commands of exec and of probes. They are pod init's children now, and are not in known. It returns when
// none is left.
//
// In the host's PID namespace the orphans of containers are pod init's children, too. Therefore a process in
// one of the mount namespaces spared is not killed, even if it is a command.
func killUnknownChildren(known map[procfs.Process]bool, spared map[string]bool) {
	procfs.KillAll(func(pid int) bool { return killUnknownChild(pid, known, spared) })
}

// killUnknownChild kills a child of pod init that is not in known, and waits until it has exited.
func killUnknownChild(pid int, known map[procfs.Process]bool, spared map[string]bool) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	s, ok := procfs.Lookup(pid)
	if !ok || s.PPID != podinit.PID() || s.State == 'Z' || known[s.Process] {
		return false
	}
	if ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid)); err == nil && spared[ns] {
		return false
	}
	return procfs.KillAndWait(fd)
}
