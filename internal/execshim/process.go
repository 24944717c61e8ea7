package execshim

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Process is a child process that Exec has made. It leads a session and a process group. The caller
// must call Wait.
type Process struct {
	pid  int
	file *os.File // a pidfd
}

// newProcess wraps a child that has not been reaped.
func newProcess(pid int) (*Process, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", pid, err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // the runtime's poller requires it
		return nil, errors.Join(fmt.Errorf("open process %d: %w", pid, err), unix.Close(fd))
	}
	return &Process{pid, os.NewFile(uintptr(fd), "process")}, nil
}

// Pid returns the process's pid in the caller's PID namespace.
func (p *Process) Pid() (int, error) { return p.pid, nil }

// Signal sends a signal. After Wait the error is os.ErrProcessDone.
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

// Wait reaps the process and returns its status. It blocks no thread meanwhile: a thread that waits
// in a system call keeps the runtime's sysmon busy.
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
	if raw.Read(reap) != nil { // the poller does not support it: block
		options = 0
		reap(0)
	}
	if err != nil {
		return 0, fmt.Errorf("wait for process %d: %w", p.pid, err)
	}
	return status, nil
}
