package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runtime-spec/specs-go"
	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/environ"
	"github.com/podrun/podrun/internal/execshim"
	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/runner/handoff"
	"github.com/podrun/podrun/runner/sandbox"
	"github.com/podrun/podrun/volumes"
)

// pendingInit is a container's first process that waits to execute its program.
type pendingInit struct {
	init  *libcontainer.Process
	stdio stdio
	shim  *execshim.Init
}

func (w *pendingInit) close() {
	w.stdio.close()
	w.shim.Close()
}

// libcontainerLogLevel makes libcontainer's process log errors only. By default it sends a line for each of its
// steps, and the supervisor has to read them all while it waits.
var libcontainerLogLevel = strconv.Itoa(int(logrus.ErrorLevel))

// startInit makes the container's process, which then waits. The output goes to the log; the input and the
// terminal, if any, go to clients that attach.
func (x *Container) startInit(s *sandbox.Sandbox, p *specs.Process) (err error) {
	w := &pendingInit{init: x.newProcess(p.Args, p.Env, p.Cwd)}
	x.Pending = w
	w.init.Init = true
	if w.stdio, err = x.makeStdio(s.Handoff, w.init); err != nil {
		return err
	}
	if err = x.labelStreams(w.init); err != nil {
		return err
	}
	if w.shim, err = x.confinement.wrapInit(w.init); err != nil {
		return err
	}
	config := x.Libcontainer.Config()
	if isPlain(&config, w.init, plainHost{cgroup2Only: cgroup2Only(), mountAttrs: volumes.RecursiveReadOnly()}) {
		w.init.LogLevel = protocol.PlainLogLevel
	}
	if err := startWrapped(w.shim, func() error { return x.Libcontainer.Start(w.init) }); err != nil {
		w.init = nil // nothing is left of it
		return StartError{plainError(err), startExitCode(err)}
	}
	CloseFiles(w.stdio.files...)
	w.stdio.files = nil
	if err := x.recordProcess(w.init); err != nil {
		return x.failStart(s, err)
	}
	return nil
}

// execInit lets the container's process execute its program.
func (x *Container) execInit(s *sandbox.Sandbox) error {
	h, w := s.Handoff, x.Pending
	// The process waits in libcontainer's init or, if it was prepared, in the exec shim. It is recorded before it may
	// proceed, so that a later supervisor can see whether it has executed its program.
	err := x.startCopy(h)
	if err == nil {
		err = x.takeTerminal(h, w.stdio)
	}
	if err == nil {
		x.pinMountNamespace(s)
		h.AddRunning(x.runningInstance())
		err = w.shim.Proceed()
	}
	if err == nil && !x.Prepared {
		err = x.Libcontainer.Exec()
	}
	if err == nil {
		err = awaitExec(w.shim)
	}
	if err != nil {
		h.RemoveRunning(x.Process)
		return x.failStart(s, err)
	}
	w.close()
	x.Pending = nil
	return nil
}

// runningInstance returns the record of a container whose process executes its program.
func (x *Container) runningInstance() handoff.RunningInstance {
	return handoff.RunningInstance{
		Name: x.Plan.Name, Attempt: x.Attempt, Process: x.Process, MountNS: x.mntns,
		UID: x.Identity.uid, GID: x.Identity.gid, Groups: x.Identity.groups, Filter: x.confinement.filterKey,
	}
}

// failStart kills a process that does not execute its program.
func (x *Container) failStart(s *sandbox.Sandbox, err error) error {
	x.Pending.kill()
	x.killByMountNamespace()
	return StartError{plainError(err), startExitCode(err)}
}

// kill kills the process.
func (w *pendingInit) kill() {
	if w.init == nil {
		return
	}
	_ = w.init.Signal(unix.SIGKILL) // it may have exited
	_, _ = w.init.Wait()
	w.init = nil
}

// execTimeout is how long the execve of a program may take. After that the container counts as running, as in
// runc from the beginning of the execve: if the program's file system does not answer, the pod can still be
// stopped.
const execTimeout = 10 * time.Second

// awaitExec waits until a container's program is executed, at most for execTimeout.
func awaitExec(init *execshim.Init) error {
	ctx, done := context.WithTimeout(context.Background(), execTimeout)
	defer done()
	if err := init.Started(ctx); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// recordProcess records the pid, the start time and the mount namespace of the container's process.
func (x *Container) recordProcess(init *libcontainer.Process) error {
	pid, err := init.Pid()
	if err != nil {
		return err
	}
	st, ok := procfs.Lookup(pid)
	if !ok {
		return errors.New("its process has ended")
	}
	x.Process = st.Process
	x.mntns, err = os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid))
	return err
}

// UpToDate reports whether a prepared container equals a container that would be made now: its process lives,
// and its environment and arguments would be the same.
func (x *Container) UpToDate(s *sandbox.Sandbox) bool {
	if st, ok := procfs.Lookup(x.PID); !ok || st.Process != x.Process || st.Exiting {
		return false
	}
	env, err := environ.Resolve(s.Plan, x.Plan, s.EnvSources())
	return err == nil && slices.Equal(env.Env, x.env) && slices.Equal(env.Args, x.args)
}

// Discard removes a container whose process waits, or was never made.
func (x *Container) Discard(s *sandbox.Sandbox) {
	if x.Pending != nil {
		x.Pending.kill()
		x.Pending.close()
	}
	x.closeStreams(s.Handoff)
	if err := x.Cleanup.Undo(); err != nil {
		fmt.Fprintf(os.Stderr, "undo start of %s: %v\n", x.Plan.Name, err)
	}
}

// errFilterByLibcontainer means that libcontainer, not the exec shim, loads the container's filter: then the
// container cannot be made before it is due.
var errFilterByLibcontainer = errors.New("it cannot be made early: libcontainer loads its filter")

// errKeptFiles means that a container uses the files of the instance before it, which must have ended.
var errKeptFiles = errors.New("it cannot be made early: it keeps the files of the instance before it")

// errLinked means that, by links in the image, a mount may lie inside another one although its path does not show
// it. A container that is made early could then create mount targets in a volume that others see.
var errLinked = errors.New("it cannot be made early: its mounts lie behind links")
