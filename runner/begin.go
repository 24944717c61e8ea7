package runner

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

	"github.com/podrun/podrun/environ"
	"github.com/podrun/podrun/internal/stage/trampoline"
)

// waiting is a container's first process that waits to execute its program.
type waiting struct {
	init   *libcontainer.Process
	ends   streamEnds
	bounce *trampoline.Bounce
}

func (w *waiting) close() {
	w.ends.close()
	w.bounce.Close()
}

// libcontainerLogs is what libcontainer's process tells of itself: errors, which are wanted. Without a word it sends
// each of its steps, and the supervisor reads them all, beside what it waits for.
var libcontainerLogs = strconv.Itoa(int(logrus.ErrorLevel))

// begin makes the container's process, with its output going to the log, and its input and
// terminal, where it has them, to who attaches. It waits.
func (x *container) begin(s *sandbox, p *specs.Process) (err error) {
	w := &waiting{init: x.newProcess(p.Args, p.Env, p.Cwd)}
	x.waiting = w
	w.init.Init = true
	if w.ends, err = x.streams(s.estate, w.init); err != nil {
		return err
	}
	if err = x.labelStreams(w.init); err != nil {
		return err
	}
	if w.bounce, err = x.confinement.bounce(w.init); err != nil {
		return err
	}
	if err := x.ct.Start(w.init); err != nil {
		w.init = nil // nothing is left of it
		return startError{plain(err), exitCodeOf(err)}
	}
	closeFiles(w.ends.files...)
	w.ends.files = nil
	if err := x.identify(w.init); err != nil {
		return x.failed(s, err)
	}
	return nil
}

// execute lets the container's process execute its program.
func (x *container) execute(s *sandbox) error {
	left, w := s.estate, x.waiting
	// Between Start and Exec its process waits: a supervisor that takes it up from here
	// on can tell whether it has run, and one that is asked to stop it is not too late.
	err := x.copyOutputs(left)
	if err == nil {
		err = x.takeTerminal(left, w.ends)
	}
	if err == nil {
		x.holdMountNamespace(s)
		left.run(x.saved())
		err = x.ct.Exec()
	}
	if err == nil {
		err = started(w.bounce)
	}
	if err != nil {
		left.withdraw(x.process)
		return x.failed(s, err)
	}
	w.close()
	x.waiting = nil
	return nil
}

// saved is what is recorded of a container whose process executes its program.
func (x *container) saved() savedRun {
	return savedRun{
		Name: x.plan.Name, Attempt: x.attempt, process: x.process, MountNS: x.mntns,
		UID: x.who.uid, GID: x.who.gid, Groups: x.who.groups, Filter: x.confinement.key,
	}
}

// failed ends a process that does not come to execute its program.
func (x *container) failed(s *sandbox, err error) error {
	x.waiting.kill()
	x.killMountNamespace()
	return startError{plain(err), exitCodeOf(err)}
}

// kill ends the process.
func (w *waiting) kill() {
	if w.init == nil {
		return
	}
	_ = w.init.Signal(unix.SIGKILL) // it may have ended
	_, _ = w.init.Wait()
	w.init = nil
}

// executing is how long a program may take to be executed before its container counts as one
// that runs, which it does for runc as soon as the kernel executes: where its file system does
// not answer the pod can still be stopped.
const executing = 10 * time.Second

// started waits until a container's program is executed.
func started(b *trampoline.Bounce) error {
	ctx, done := context.WithTimeout(context.Background(), executing)
	defer done()
	if err := b.Started(ctx); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// identify finds out what the container's process is known by.
func (x *container) identify(init *libcontainer.Process) error {
	pid, err := init.Pid()
	if err != nil {
		return err
	}
	st, ok := stat(pid)
	if !ok {
		return errors.New("its process has gone")
	}
	x.process = st.process
	x.mntns, err = os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid))
	return err
}

// upToDate says whether a container that was made early is as it would be made now: its
// process lives, and what its environment refers to is the same.
func (x *container) upToDate(s *sandbox) bool {
	if st, ok := stat(x.PID); !ok || st.process != x.process || st.ending {
		return false
	}
	env, err := environ.Resolve(s.plan, x.plan, s.sources())
	return err == nil && slices.Equal(env.Env, x.env) && slices.Equal(env.Args, x.args)
}

// giveUp removes a container whose process waits, or was never made.
func (x *container) giveUp(s *sandbox) {
	if x.waiting != nil {
		x.waiting.kill()
		x.waiting.close()
	}
	x.closeStreams(s.estate)
	if err := x.cleanup.Undo(); err != nil {
		fmt.Fprintf(os.Stderr, "undo start of %s: %v\n", x.plan.Name, err)
	}
}

// errLate is a container that libcontainer would look into before its time.
var errLate = errors.New("it cannot be made early: libcontainer loads its filter")

// errLinked is a container that may have mounts in mounts: by links of its image, whose paths
// do not tell, so that places would be made in a volume that others see.
var errLinked = errors.New("it cannot be made early: its mounts lie behind links")
