package execshim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// ExecConfig describes a process to make in a running container.
type ExecConfig struct {
	Config
	Args, Env []string
	Target    *os.File // a pidfd of a process of the container
	Cgroup    *os.File // the container's directory, or nil for the caller's cgroup
	Stdio     [3]*os.File
}

// ErrCgroup means that the process could not be made in its cgroup.
var ErrCgroup = errors.New("no process can be made in the cgroup")

// Exec makes a process in a container and returns when the process has executed its program. The
// error may be a *StartError. If ctx ends before, nothing of the process is left.
//
// Nothing of the caller is reachable from the container at any time. The exec shim runs in the
// caller's PID namespace while it has the caller's privileges. The process that it makes in the
// container has from the start only the descriptors, memory, user, capabilities and namespaces of
// the Config. Exception, without FilterEarly: it has CAP_SYS_ADMIN of the user namespace until the
// filter is loaded, and cannot be traced without CAP_SYS_PTRACE.
func (p *Program) Exec(ctx context.Context, j *ExecConfig) (*Process, error) {
	config, args, err := j.Encode()
	if err != nil {
		return nil, err
	}
	local, remote, err := newChannel()
	if err != nil {
		return nil, err
	}
	defer local.Close()
	defer remote.Close()
	attr := &os.ProcAttr{
		Env: j.Env, Files: []*os.File{j.Stdio[0], j.Stdio[1], j.Stdio[2], j.Target, remote}, Sys: &syscall.SysProcAttr{},
	}
	if j.Cgroup != nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(j.Cgroup.Fd())
	}
	program, err := p.open(attr.Files)
	if err != nil {
		return nil, err
	}
	defer program.Close()
	path := fmt.Sprintf("/proc/self/fd/%d", program.Fd())
	maker, err := os.StartProcess(path, args, attr)
	if err != nil && j.Cgroup != nil {
		err = errors.Join(ErrCgroup, err)
	}
	if err != nil {
		return nil, fmt.Errorf("start the exec shim: %w", err)
	}
	remote.Close()
	return j.await(ctx, local, maker, config)
}

// Encode returns the configuration that the exec shim reads from its channel, and its arguments.
func (j *ExecConfig) Encode() (config []byte, args []string, err error) {
	if len(j.Args) == 0 {
		return nil, nil, errors.New("no command to run")
	}
	config, err = j.encode(true)
	return config, append([]string{"podrun"}, j.Args...), err
}

// await sends the configuration and reads the replies.
func (j *ExecConfig) await(ctx context.Context, channel *os.File, maker *os.Process, config []byte) (*Process, error) {
	stop := context.AfterFunc(ctx, func() { _ = channel.SetDeadline(time.Now()) })
	defer stop()
	var h replies
	_, err := channel.Write(config)
	if err == nil || errors.Is(err, syscall.EPIPE) { // the replies give the reason then
		err = h.read(channel, j.Args[0])
	}
	if err != nil {
		_ = maker.Kill()
	}
	state, werr := maker.Wait()
	if err != nil {
		// Read the pid of a process that it made only now that it cannot make any more.
		_ = channel.SetDeadline(time.Now().Add(drainTimeout))
		_ = h.read(channel, j.Args[0])
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
	}
	if err == nil && h.failed != nil {
		err = h.failed
	}
	if h.pid == 0 {
		if err == nil {
			err = errors.Join(fmt.Errorf("the exec shim ended: %v", state), werr)
		}
		return nil, err
	}
	var made *Process
	if err == nil {
		made, err = newProcess(h.pid)
	}
	if err != nil { // it is our child: its pid is not reused before we reap it
		_ = syscall.Kill(h.pid, syscall.SIGKILL)
		reap(h.pid)
		return nil, err
	}
	return made, nil
}

func reap(pid int) {
	for {
		if _, err := syscall.Wait4(pid, nil, 0, nil); err != syscall.EINTR {
			return
		}
	}
}

// drainTimeout bounds the wait for the last replies of a killed exec shim.
const drainTimeout = 10 * time.Millisecond
