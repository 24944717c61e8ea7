package trampoline

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Process is one made by Join, a child of the caller's. It leads a session and a group.
// It has to be waited for.
type Process struct {
	pid  int
	file *os.File // a pidfd
}

// newProcess is for a child that nobody has waited for.
func newProcess(pid int) (*Process, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", pid, err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // else it would not be waited for by the runtime
		return nil, errors.Join(fmt.Errorf("open process %d: %w", pid, err), unix.Close(fd))
	}
	return &Process{pid, os.NewFile(uintptr(fd), "process")}, nil
}

// Pid is its number in the caller's PID namespace.
func (p *Process) Pid() (int, error) { return p.pid, nil }

// Signal sends it a signal. Once it has been waited for the error is os.ErrProcessDone.
func (p *Process) Signal(sig os.Signal) error {
	number, ok := sig.(syscall.Signal)
	if !ok {
		return fmt.Errorf("there is no signal %v", sig)
	}
	raw, err := p.file.SyscallConn()
	if err != nil {
		return err
	}
	if raw.Control(func(fd uintptr) { err = unix.PidfdSendSignal(int(fd), number, nil, 0) }) != nil || err == unix.ESRCH {
		return os.ErrProcessDone
	}
	return err
}

// Wait returns how the process has ended, and lets go of it. It takes no thread meanwhile:
// one that waits in a system call keeps the runtime looking after it.
func (p *Process) Wait() (status syscall.WaitStatus, err error) {
	defer p.file.Close()
	raw, err := p.file.SyscallConn()
	if err != nil {
		return 0, err
	}
	options := unix.WNOHANG
	reap := func(uintptr) bool {
		var ended unix.WaitStatus
		var pid int
		for {
			if pid, err = unix.Wait4(p.pid, &ended, options, nil); err != unix.EINTR {
				break
			}
		}
		status = syscall.WaitStatus(ended)
		return pid != 0 || err != nil
	}
	if raw.Read(reap) != nil { // it cannot be waited for so
		options = 0
		reap(0)
	}
	if err != nil {
		return 0, fmt.Errorf("wait for process %d: %w", p.pid, err)
	}
	return status, nil
}
