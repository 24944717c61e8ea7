package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/protocol"
)

// ErrLocked means that a living process holds the pod's lock.
var ErrLocked = errors.New("the pod is running or another podrun command is working on it")

// Lock locks the pod for the caller, or fails with ErrLocked. The lock belongs to the open file:
// the pod init inherits it, and the kernel releases it when the last process that has it is gone,
// however it died. The file is in the data directory: a pod that has lost its runtime directory still
// holds its name.
func (p Pod) Lock() (*os.File, error) { return p.lock(unix.F_OFD_SETLK) }

// WaitLock waits until no other process holds the pod.
func (p Pod) WaitLock() (*os.File, error) { return p.lock(unix.F_OFD_SETLKW) }

// Alive reports whether some process holds the pod. It queries the lock without taking it, so that
// a reader never blocks a writer.
func (p Pod) Alive() bool {
	alive, _ := p.alive()
	return alive
}

// alive is Alive with the error, which is one of IsExhausted.
func (p Pod) alive() (bool, error) {
	path, err := p.heldLock()
	return path != "", err
}

// PodInit returns the pod init as recorded in the lock: its pid in the PID namespace of the process
// that started the pod, and its start time (/proc/PID/stat). ok is false if the pod is not alive,
// or has not recorded it yet.
func (p Pod) PodInit() (pid int, start uint64, ok bool) {
	h, ok := p.holder()
	return h.PodInit.PID, h.PodInit.StartTime, ok
}

// Monitor returns the pid of the monitor, which starts another pod init when one is killed. The
// monitor may have been killed itself. ok is as for PodInit.
func (p Pod) Monitor() (pid int, ok bool) {
	h, ok := p.holder()
	return h.monitor.PID, ok
}

// lockHolder is what a pod init records in the pod's lock.
type lockHolder struct {
	PodInit procfs.Process
	monitor procfs.Process // start time 0: an earlier podrun has started the pod
	serving bool           // a supervisor of this pod init has opened the control socket
}

// holder reads the lock. ok is false if the pod is not alive, or its pod init has recorded nothing yet.
func (p Pod) holder() (h lockHolder, ok bool) {
	path, err := p.heldLock()
	if path == "" || err != nil {
		return h, false
	}
	return readHolder(path)
}

// readHolder reads what the latest pod init has recorded in a lock file. ok is false if there is nothing.
func readHolder(path string) (h lockHolder, ok bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return h, false
	}
	line, state, _ := strings.Cut(string(b), "\n")
	n, _ := fmt.Sscan(line, &h.PodInit.PID, &h.PodInit.StartTime, &h.monitor.PID, &h.monitor.StartTime)
	h.serving = strings.TrimSpace(state) == protocol.LockServing
	return h, n >= 3
}

func (p Pod) lockFile() string { return filepath.Join(p.data, protocol.FileLock) }

// formerLockFile is the lock of a pod that an earlier podrun has started.
func (p Pod) formerLockFile() string { return filepath.Join(p.runtime, protocol.FileLock) }

// heldLock returns the lock file that some process holds, or "". The error is one of IsExhausted.
func (p Pod) heldLock() (path string, err error) {
	for _, path := range []string{p.lockFile(), p.formerLockFile()} {
		held, err := isHeld(path)
		switch {
		case held:
			return path, nil
		case IsExhausted(err):
			return "", err
		}
	}
	return "", nil
}

// isHeld opens the lock for reading only, so that a watch of the lock's file fires only for processes that could
// have held it.
func isHeld(path string) (bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	probe := unix.Flock_t{Type: unix.F_WRLCK}
	err = unix.FcntlFlock(file.Fd(), unix.F_OFD_GETLK, &probe)
	return err == nil && probe.Type != unix.F_UNLCK, err
}

func (p Pod) lock(cmd int) (*os.File, error) {
	for {
		if err := makeDirs(p.data); err != nil {
			return nil, fmt.Errorf("lock pod %s: %w", p.Name, err)
		}
		f, err := os.OpenFile(p.lockFile(), os.O_RDWR|os.O_CREATE, 0o600)
		if errors.Is(err, os.ErrNotExist) {
			continue // removed in between
		}
		if err != nil {
			return nil, fmt.Errorf("lock pod %s: %w", p.Name, err)
		}
		if err := tryLock(f, cmd); err != nil {
			f.Close()
			if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
				return nil, fmt.Errorf("lock pod %s: %w", p.Name, ErrLocked)
			}
			return nil, fmt.Errorf("lock pod %s: %w", p.Name, err)
		}
		if current, err := os.Stat(p.lockFile()); err == nil {
			if mine, err := f.Stat(); err == nil && os.SameFile(current, mine) {
				return p.newHolder(f)
			}
		}
		f.Close() // the pod was removed while we waited; its name is free again
	}
}

// newHolder prepares the pod's name for its new holder, which has locked f: it clears the record of the former one. It
// refuses a pod of an earlier podrun that runs.
func (p Pod) newHolder(f *os.File) (*os.File, error) {
	held, err := isHeld(p.formerLockFile())
	switch {
	case held:
		err = ErrLocked
	case !IsExhausted(err):
		err = errors.Join(f.Truncate(0), makeDirs(p.runtime)) // a removal that has just ended deletes the directory
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock pod %s: %w", p.Name, err)
	}
	return f, nil
}

func tryLock(f *os.File, cmd int) error {
	for {
		lock := unix.Flock_t{Type: unix.F_WRLCK}
		if err := unix.FcntlFlock(f.Fd(), cmd, &lock); err != unix.EINTR {
			return err
		}
	}
}

// makeDirs creates a directory of a pod with its parents. Another process may remove a parent at
// the same time, with the last pod in it; makeDirs retries then.
func makeDirs(dir string) error {
	var err error
	for range 100 {
		if err = os.MkdirAll(dir, 0o700); !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrExist) {
			break
		}
	}
	return err
}
