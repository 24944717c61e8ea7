package store

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Watch reports changes of pods and workloads: a status was published, a pod's processes are gone,
// an object was changed. It is a descriptor that becomes readable, so that a C program can wait for
// it, too.
type Watch struct{ fd int }

const (
	maskRenamed = unix.IN_ATTRIB | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF // files are replaced by renaming another to their name
	maskClosed  = maskRenamed | unix.IN_CLOSE_WRITE                        // the last opener has closed the lock's file
)

// NewWatch returns a Watch of nothing. Callers read a thing after they have begun to watch it.
func NewWatch() (*Watch, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	return &Watch{fd}, nil
}

// Pod watches a pod's status and its end.
func (w *Watch) Pod(p Pod) error {
	err := w.add(filepath.Join(p.runtime, statusFile), maskRenamed)
	if errors.Is(err, unix.ENOENT) { // it has none yet
		err = w.add(p.runtime, unix.IN_MOVED_TO|unix.IN_DELETE_SELF)
	}
	if lerr := w.add(p.lockFile(), maskClosed); !errors.Is(lerr, unix.ENOENT) {
		err = errors.Join(err, lerr)
	}
	if errors.Is(err, unix.ENOENT) { // gone; a caller that reads it will find out
		return nil
	}
	return err
}

// Runtime watches for the loss of a pod's runtime directory.
func (w *Watch) Runtime(p Pod) error {
	err := w.add(filepath.Join(p.runtime, socketFile), unix.IN_ATTRIB|unix.IN_DELETE_SELF) // its last link goes
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// Workload watches a workload's object and state.
func (w *Watch) Workload(x Workload) error {
	var errs []error
	for _, path := range []string{x.object, x.data + ".json"} {
		if err := w.add(path, maskRenamed); !errors.Is(err, unix.ENOENT) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (w *Watch) add(path string, mask uint32) error {
	if _, err := unix.InotifyAddWatch(w.fd, path, mask); err != nil {
		return fmt.Errorf("watch %s: %w", path, err)
	}
	return nil
}

// FD returns the descriptor.
func (w *Watch) FD() int { return w.fd }

// Close closes the descriptor.
func (w *Watch) Close() error { return unix.Close(w.fd) }
