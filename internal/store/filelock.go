package store

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// FileLock is a lock file that many may share or one may hold exclusively. The lock belongs to the
// open file: a child that inherits File keeps it, and the kernel releases it when the last holder
// is gone, however it died.
type FileLock struct{ f *os.File }

// OpenFileLock opens a lock file, creating it if missing, without locking it.
func OpenFileLock(path string) (*FileLock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	return &FileLock{f}, nil
}

// LockExclusive opens a lock file and waits until no other process holds the lock.
func LockExclusive(path string) (*FileLock, error) { return lockFile(path, (*FileLock).Exclusive) }

// LockShared opens a lock file and waits until no process holds the lock exclusively.
func LockShared(path string) (*FileLock, error) { return lockFile(path, (*FileLock).Shared) }

func lockFile(path string, take func(*FileLock) error) (*FileLock, error) {
	l, err := OpenFileLock(path)
	if err != nil {
		return nil, err
	}
	if err := take(l); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// InheritedFileLock returns the lock that this process has inherited at a descriptor. Its own
// children do not inherit it.
func InheritedFileLock(fd int) (*FileLock, error) {
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, unix.FD_CLOEXEC); err != nil {
		return nil, fmt.Errorf("find the lock at descriptor %d: %w", fd, err)
	}
	return &FileLock{os.NewFile(uintptr(fd), "lock")}, nil
}

// Shared waits until no process holds the lock exclusively. It converts an exclusive lock
// atomically.
func (l *FileLock) Shared() error { return l.set(unix.F_OFD_SETLKW, unix.F_RDLCK) }

// Exclusive waits until no other process holds the lock.
func (l *FileLock) Exclusive() error { return l.set(unix.F_OFD_SETLKW, unix.F_WRLCK) }

// TryExclusive takes the lock exclusively if no other process holds it.
func (l *FileLock) TryExclusive() (bool, error) {
	err := l.set(unix.F_OFD_SETLK, unix.F_WRLCK)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return false, nil
	}
	return err == nil, err
}

// Held reports whether another process holds the lock. It does not take it, not even for a moment.
func (l *FileLock) Held() (bool, error) {
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(l.f.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
		return false, fmt.Errorf("query the lock %s: %w", l.f.Name(), err)
	}
	return lock.Type != unix.F_UNLCK, nil
}

// File returns the file for a child to inherit.
func (l *FileLock) File() *os.File { return l.f }

// Close releases the lock, unless a child holds it too.
func (l *FileLock) Close() error { return l.f.Close() }

func (l *FileLock) set(cmd int, kind int16) error {
	for {
		lock := unix.Flock_t{Type: kind}
		err := unix.FcntlFlock(l.f.Fd(), cmd, &lock)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("lock %s: %w", l.f.Name(), err)
		}
		return nil
	}
}
