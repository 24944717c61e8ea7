package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/pod"
)

// Workload is the place of an object that makes pods. The object itself is kept as all
// others are; what is remembered of it is beside, with a lock that its controller holds.
type Workload struct {
	Kind            pod.ObjectKind
	Namespace, Name string

	dirs       Dirs
	data       string // of the state and the lock, without their endings
	object     string
	controller string // what the controller has to say
}

// Workload names the place of an object that makes pods. Words that are no names are
// refused.
func (d Dirs) Workload(kind pod.ObjectKind, namespace, name string) (Workload, error) {
	object, err := d.objectFile(kind, namespace, name)
	if err != nil {
		return Workload{}, fmt.Errorf("find workload: %w", err)
	}
	dir := filepath.Join("workloads", objectDirs[kind], namespace)
	return Workload{
		Kind: kind, Namespace: namespace, Name: name, dirs: d, object: object,
		data: filepath.Join(d.Data, dir, name), controller: filepath.Join(d.Runtime, dir, name+".log"),
	}, nil
}

// Workloads lists those there are of the given kinds in a namespace, or in all of them
// if it is "".
func (d Dirs) Workloads(namespace string, kinds ...pod.ObjectKind) ([]Workload, error) {
	var list []Workload
	for _, kind := range kinds {
		objects, err := d.Objects(kind, namespace)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			w, err := d.Workload(kind, o.Namespace, o.Name)
			if err != nil {
				return nil, err
			}
			list = append(list, w)
		}
	}
	return list, nil
}

// Object reads the object. One that is not there gives fs.ErrNotExist.
func (w Workload) Object() (*pod.Object, error) {
	return w.dirs.Object(w.Kind, w.Namespace, w.Name)
}

// ReadState reads what is remembered into v, which stays as it is if there is nothing.
func (w Workload) ReadState(v any) error {
	if err := readJSON(w.data+".json", v); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read what is known of %s %s: %w", w.Kind, w.Name, err)
	}
	return nil
}

// WriteState remembers v, durably.
func (w Workload) WriteState(v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		if err = makeDirs(filepath.Dir(w.data)); err == nil {
			err = WriteFile(w.data+".json", b)
		}
	}
	if err != nil {
		return fmt.Errorf("remember what is known of %s %s: %w", w.Kind, w.Name, err)
	}
	return nil
}

// Log opens the file for what a controller has to say, which is in memory.
func (w Workload) Log() (*os.File, error) {
	if err := makeDirs(filepath.Dir(w.controller)); err != nil {
		return nil, fmt.Errorf("open the log of %s %s: %w", w.Kind, w.Name, err)
	}
	return os.OpenFile(w.controller, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}

// Lock makes the caller the workload's controller, or fails with ErrLocked. boot is
// recorded: the start of the machine in which there was a controller last. Who has the
// lock is too: see Sign.
func (w Workload) Lock(boot string) (*FileLock, error) {
	for {
		if err := makeDirs(filepath.Dir(w.data)); err != nil {
			return nil, fmt.Errorf("lock %s %s: %w", w.Kind, w.Name, err)
		}
		l, err := OpenFileLock(w.data + ".lock")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		free, err := l.TryExclusive()
		if err == nil && !free {
			err = fmt.Errorf("lock %s %s: %w", w.Kind, w.Name, ErrLocked)
		}
		if err != nil {
			l.Close()
			return nil, err
		}
		if l.current() {
			return l, w.WriteController(l.f, boot, os.Getpid())
		}
		l.Close() // it was removed while we opened it
	}
}

// current says whether the lock's file is still the one of its name.
func (l *FileLock) current() bool {
	have, err := os.Stat(l.f.Name())
	mine, merr := l.f.Stat()
	return errors.Join(err, merr) == nil && os.SameFile(have, mine)
}

// WriteController writes into the lock's file who has it, and since which start of the machine. It
// is not synced: after a power cut nobody asks for it.
func (w Workload) WriteController(lock *os.File, boot string, pid int) error {
	text := fmt.Sprintf("%s %d\n", boot, pid)
	err := lock.Truncate(0)
	if err == nil {
		_, err = lock.WriteAt([]byte(text), 0)
	}
	if err != nil {
		return fmt.Errorf("sign the lock of %s %s: %w", w.Kind, w.Name, err)
	}
	return nil
}

// Controller says whether a controller lives, in which start of the machine there was one
// last, and its pid.
func (w Workload) Controller() (alive bool, boot string, pid int) {
	f, err := os.Open(w.data + ".lock")
	if err != nil {
		return false, "", 0
	}
	defer f.Close()
	probe := unix.Flock_t{Type: unix.F_WRLCK}
	alive = unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &probe) == nil && probe.Type != unix.F_UNLCK
	b := make([]byte, 100)
	n, _ := f.ReadAt(b, 0)
	_, _ = fmt.Sscan(string(b[:n]), &boot, &pid)
	return alive, boot, pid
}

// Remove forgets the workload. The caller holds its lock.
func (w Workload) Remove() error {
	err := w.dirs.DeleteObject(w.Kind, w.Namespace, w.Name)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	paths := []string{w.controller, w.data + ".json", w.data + ".lock"}
	halves, _ := filepath.Glob(filepath.Join(filepath.Dir(w.data), "."+w.Name+".json.*")) // of one who was killed; a name has no pattern
	for _, path := range append(halves, paths...) {
		if rerr := os.Remove(path); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	os.Remove(filepath.Dir(w.data)) // if that was the last of the namespace
	os.Remove(filepath.Dir(w.controller))
	if err != nil {
		return fmt.Errorf("remove %s %s: %w", w.Kind, w.Name, err)
	}
	return nil
}

// BootID is the kernel's name of this run of the machine, or "" where it tells none.
func BootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
