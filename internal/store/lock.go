package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/rawsys"
)

// ErrLocked means that a living process holds the pod's lock.
var ErrLocked = errors.New("the pod is running or another podrun command is working on it")

// Lock locks the pod for the caller, or fails with ErrLocked. The lock belongs to the open file:
// the pod init inherits it, and the kernel releases it when the last process that has it is gone,
// however it died.
func (p Pod) Lock() (*os.File, error) { return p.lock(unix.F_OFD_SETLK) }

// WaitLock waits until no other process holds the pod.
func (p Pod) WaitLock() (*os.File, error) { return p.lock(unix.F_OFD_SETLKW) }

// Alive reports whether some process holds the pod. It queries the lock without taking it, so that
// a reader never blocks a writer. It opens the lock for reading only, so that a watch of the lock's
// file fires only for processes that could have held it.
func (p Pod) Alive() bool {
	alive, _ := p.alive()
	return alive
}

// alive is Alive with the error, for callers that need the reason.
func (p Pod) alive() (bool, error) {
	fd, err := rawsys.Open(p.lockFile(), unix.O_RDONLY)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	probe := unix.Flock_t{Type: unix.F_WRLCK}
	err = unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &probe)
	return err == nil && probe.Type != unix.F_UNLCK, err
}

// Incarnation returns a number that another pod of the same name does not have: the inode of the lock file, which a
// removal deletes. It is 0 without a lock file.
func (p Pod) Incarnation() uint64 {
	var st unix.Stat_t
	if unix.Stat(p.lockFile(), &st) != nil {
		return 0
	}
	return st.Ino
}

// PodInit returns the pod init as recorded in the lock: its pid in the PID namespace of the process
// that started the pod, and its start time (/proc/PID/stat). ok is false if the pod is not alive,
// or has not recorded it yet.
func (p Pod) PodInit() (pid int, start uint64, ok bool) {
	if !p.Alive() {
		return 0, 0, false
	}
	b, err := readFile(p.lockFile())
	if err != nil {
		return 0, 0, false
	}
	n, _ := fmt.Sscan(string(b), &pid, &start)
	return pid, start, n == 2
}

// Monitor returns the pid of the monitor, which starts another pod init when one is killed. The
// monitor may have been killed itself. ok is as for PodInit.
func (p Pod) Monitor() (pid int, ok bool) {
	if !p.Alive() {
		return 0, false
	}
	b, err := readFile(p.lockFile())
	if err != nil {
		return 0, false
	}
	var podInit, start uint64
	n, _ := fmt.Sscan(string(b), &podInit, &start, &pid)
	return pid, n == 3
}

func (p Pod) lockFile() string { return filepath.Join(p.runtime, protocol.FileLock) }

func (p Pod) lock(cmd int) (*os.File, error) {
	for {
		if err := makeDirs(p.runtime); err != nil {
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
				return f, nil
			}
		}
		f.Close() // the pod was removed while we waited; its name is free again
	}
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
