// Package nsthread runs a function on a thread of its own inside other namespaces, and discards the
// thread.
//
// A goroutine that changes its thread's namespaces may fail to return: leaving a namespace of the
// user may be permitted while re-entering the host's is not (no CAP_SYS_ADMIN over it), and the
// thread would return to Go's pool in the wrong namespace. A locked thread whose goroutine ends is
// destroyed instead.
package nsthread

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// Do runs f on a new thread that has joined the namespaces of the given files (as /proc/1/ns/net;
// of any kind except user, mount and pid) and waits for it. f must not start goroutines that depend
// on these namespaces.
func Do(f func() error, nsFiles ...string) error {
	return runOnDisposableThread(func() error {
		for _, file := range nsFiles {
			if err := enter(file); err != nil {
				return err
			}
		}
		return f()
	})
}

func enter(file string) error {
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open namespace %s: %w", file, err)
	}
	defer unix.Close(fd)
	if err := unix.Setns(fd, 0); err != nil {
		return fmt.Errorf("join namespace %s: %w", file, err)
	}
	return nil
}

// DoInNetwork runs f in the network namespace of a file and returns to the previous one. The caller
// is a function that Do or a Thread runs, in namespaces of the same user.
func DoInNetwork(file string, f func() error) error {
	const path = "/proc/thread-self/ns/net"
	back, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open namespace %s: %w", path, err)
	}
	defer unix.Close(back)
	if err := enter(file); err != nil {
		return err
	}
	err = f()
	if berr := unix.Setns(back, unix.CLONE_NEWNET); berr != nil {
		err = errors.Join(err, fmt.Errorf("go back to namespace %s: %w", path, berr))
	}
	return err
}

// runOnDisposableThread runs f on a thread that is not the main one and ends with it. The main
// thread cannot end before the process, and /proc/self is the main thread's view.
func runOnDisposableThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		err := errGoexit
		defer func() { done <- err }()
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if onMainThread() {
			err = runOnDisposableThread(f) // on another thread, because this one is locked
			runtime.UnlockOSThread()
			return
		}
		err = f()
	}()
	return <-done
}

func onMainThread() bool { return unix.Gettid() == unix.Getpid() }
