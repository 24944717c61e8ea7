package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrLocked says that a living process holds the pod.
var ErrLocked = errors.New("the pod is running or another podrun command is working on it")

// Lock takes the pod for the caller, or fails with ErrLocked. The lock belongs to
// the open file: it is handed to the keeper by inheritance and freed by the
// kernel when the last process that has it is gone, however it died.
func (p Pod) Lock() (*os.File, error) { return p.lock(unix.F_OFD_SETLK) }

// WaitLock waits until nobody else holds the pod.
func (p Pod) WaitLock() (*os.File, error) { return p.lock(unix.F_OFD_SETLKW) }

// Alive says whether some process holds the pod. It asks without taking, so a
// reader never stands in the way of a writer, and it opens the lock for reading only:
// who watches the lock's file hears of those who could have held it.
func (p Pod) Alive() bool {
	alive, _ := p.alive()
	return alive
}

// alive is Alive for whom it matters why nobody is seen.
func (p Pod) alive() (bool, error) {
	f, err := os.Open(p.lockFile())
	if err != nil {
		return false, err
	}
	defer f.Close()
	probe := unix.Flock_t{Type: unix.F_WRLCK}
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &probe)
	return err == nil && probe.Type != unix.F_UNLCK, err
}

// PodInit is the pod's first process, as its keeper has signed the lock: its pid in the PID
// namespace of who started the pod, and its start time (/proc/PID/stat). ok is false if
// the pod does not live, or has not got so far.
func (p Pod) PodInit() (pid int, start uint64, ok bool) {
	if !p.Alive() {
		return 0, 0, false
	}
	b, err := os.ReadFile(p.lockFile())
	if err != nil {
		return 0, 0, false
	}
	n, _ := fmt.Sscan(string(b), &pid, &start)
	return pid, start, n == 2
}

// Monitor is the pid of the keeper's guard, which begins another when the keeper is killed;
// it may have been killed itself. ok is as Keeper's.
func (p Pod) Monitor() (pid int, ok bool) {
	if !p.Alive() {
		return 0, false
	}
	b, err := os.ReadFile(p.lockFile())
	if err != nil {
		return 0, false
	}
	var podInit, start uint64
	n, _ := fmt.Sscan(string(b), &podInit, &start, &pid)
	return pid, n == 3
}

func (p Pod) lockFile() string { return filepath.Join(p.runtime, "lock") }

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

// makeDirs makes a directory of a pod and those above it, which may be removed at the same
// time, with the last pod in it: then one above is missing, or was there a moment ago.
func makeDirs(dir string) error {
	var err error
	for range 100 {
		if err = os.MkdirAll(dir, 0o700); !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrExist) {
			break
		}
	}
	return err
}
