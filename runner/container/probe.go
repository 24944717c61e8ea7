package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/podinit"
)

const (
	// maxProbeOutput is how much of a command's output is kept (Kubernetes: pkg/probe/exec).
	maxProbeOutput = 10 << 10

	// outputTimeout is how long a command's output is read after the command's exit: a process that it has
	// left in the container may keep the pipe open for ever.
	outputTimeout = 100 * time.Millisecond
)

// ProbeExec runs a command in the container and derives the outcome from its exit code. If the command
// cannot be run the outcome is unknown, as with the kubelet and containerd.
func (x *Container) ProbeExec(args []string, timeout time.Duration) (lifecycle.Outcome, string) {
	ctx, cancel := context.WithTimeout(x.Context(), timeout)
	defer cancel()
	code, output, err := x.runCommand(ctx, args)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return lifecycle.Failure, fmt.Sprintf("command timed out: %q timed out after %v", args, timeout)
	case err != nil:
		return lifecycle.Unknown, err.Error()
	case code != 0:
		return lifecycle.Failure, output
	}
	return lifecycle.Success, ""
}

// CanDelegateExec reports whether a prober can run a probe's command as ProbeExec does.
func (x *Container) CanDelegateExec(args []string) bool {
	config := x.Libcontainer.Config()
	return x.confinement.program != nil && shimCanExec(&config, x.newProcess(args, x.env, x.Plan.Cwd))
}

// DelegateExec sets a probe's command for a prober, and returns a pidfd of the container's first process.
func (x *Container) DelegateExec(args []string, probe *podinit.Probe) (target *os.File, err error) {
	config := x.Libcontainer.Config()
	j, err := x.shimExec(&config, x.newProcess(args, x.env, x.Plan.Cwd))
	if err != nil {
		return nil, err
	}
	probe.Target, probe.Cgroup, probe.Env = x.Plan.Name, cgroupOf(&config), j.Env
	if probe.Config, probe.Args, err = j.Encode(); err != nil {
		return nil, err
	}
	return x.pidfd.open(x.Process)
}

// HookExec runs a hook's command. Its output is discarded.
func (x *Container) HookExec(args []string) error {
	code, _, err := x.runCommand(x.Context(), args)
	if err == nil && code != 0 {
		err = fmt.Errorf("command exited with %d", code)
	}
	return err
}

// runCommand runs a process in the container, with the container's environment. It returns the exit code and
// the beginning of the output. When ctx ends, the whole process group is killed.
func (x *Container) runCommand(ctx context.Context, args []string) (code int, output string, err error) {
	r, w, err := outputPipe()
	if err != nil {
		return 0, "", fmt.Errorf("make pipe: %w", err)
	}
	defer r.Close()
	p := x.newProcess(args, x.env, x.Plan.Cwd)
	p.Stdout, p.Stderr = w, w
	run, err := x.startProcess(ctx, p)
	w.Close()
	if err != nil {
		return 0, "", plainError(err)
	}
	read := make(chan string, 1)
	go func() {
		kept, _ := io.ReadAll(io.LimitReader(r, maxProbeOutput)) // truncated output is fine
		io.Copy(io.Discard, r)                                   // the command must not block
		read <- string(kept)
	}()
	stop := context.AfterFunc(ctx, func() {
		if pid, err := run.Pid(); err == nil { // the command leads its own process group
			unix.Kill(-pid, unix.SIGKILL)
		}
	})
	code = ExitCode(run)
	stop()
	runtime.Gosched() // the output mostly ends here: no timer then, which would wake the supervisor
	select {
	case output = <-read:
	default:
		r.SetReadDeadline(time.Now().Add(outputTimeout))
		output = <-read
	}
	return code, output, nil
}

// outputPipe makes a pipe whose write end is for another process. The supervisor never waits for the write
// end.
func outputPipe() (r, w *os.File, err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, err
	}
	if err := unix.SetNonblock(ends[0], true); err != nil {
		return nil, nil, errors.Join(err, unix.Close(ends[0]), unix.Close(ends[1]))
	}
	return os.NewFile(uintptr(ends[0]), "output"), os.NewFile(uintptr(ends[1]), "output"), nil
}
