package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
)

// Workload gives access to the files of an object that makes pods. The object is stored as all
// others are. Its state is separate, with a lock that its controller holds.
type Workload struct {
	Kind            pod.ObjectKind
	Namespace, Name string

	dirs       Dirs
	data       string // path of the state and the lock, without their extensions
	object     string
	controller string // path of the controller's log
}

// workloadsRoot returns the directory of the workloads in the data or the runtime directory.
func workloadsRoot(dir string) string { return filepath.Join(dir, "workloads") }

// Workload returns the Workload of an object that makes pods. It refuses invalid names.
func (d Dirs) Workload(kind pod.ObjectKind, namespace, name string) (Workload, error) {
	object, err := d.objectFile(kind, namespace, name)
	if err != nil {
		return Workload{}, fmt.Errorf("find workload: %w", err)
	}
	dir := filepath.Join(objectDirs[kind], namespace)
	return Workload{
		Kind: kind, Namespace: namespace, Name: name, dirs: d, object: object,
		data: filepath.Join(workloadsRoot(d.Data), dir, name), controller: filepath.Join(workloadsRoot(d.Runtime), dir, name+".log"),
	}, nil
}

// Workloads returns the existing workloads of the given kinds in a namespace, or in all namespaces
// for "".
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

// Object reads the object; fs.ErrNotExist if it is missing.
func (w Workload) Object() (*pod.Object, error) {
	return w.dirs.Object(w.Kind, w.Namespace, w.Name)
}

// ReadState reads the state into v. It leaves v unchanged if there is none.
func (w Workload) ReadState(v any) error {
	if err := readJSON(w.data+".json", v); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the state of %s %s: %w", w.Kind, w.Name, err)
	}
	return nil
}

// WriteState writes the state, durably.
func (w Workload) WriteState(v any) error {
	err := makeDirs(filepath.Dir(w.data))
	if err == nil {
		err = writeJSON(WriteFile, w.data+".json", v)
	}
	if err != nil {
		return fmt.Errorf("write the state of %s %s: %w", w.Kind, w.Name, err)
	}
	return nil
}

// Log opens the file for the controller's messages, which is in memory.
func (w Workload) Log() (*os.File, error) {
	if err := makeDirs(filepath.Dir(w.controller)); err != nil {
		return nil, fmt.Errorf("open the log of %s %s: %w", w.Kind, w.Name, err)
	}
	return os.OpenFile(w.controller, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}

// Lock makes the caller the workload's controller, or fails with ErrLocked. It records the boot
// in which a controller ran last. WriteController also records the holder of the lock.
func (w Workload) Lock() (*FileLock, error) {
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
			return l, w.WriteController(l.f, os.Getpid())
		}
		l.Close() // it was removed while we opened it
	}
}

// current reports whether the lock's file is still the one at its path.
func (l *FileLock) current() bool {
	have, err := os.Stat(l.f.Name())
	mine, merr := l.f.Stat()
	return errors.Join(err, merr) == nil && os.SameFile(have, mine)
}

// WriteController writes the lock's holder and the current boot into the lock's file. It does not
// sync: after a power cut the content does not matter.
func (w Workload) WriteController(lock *os.File, pid int) error {
	text := fmt.Sprintf("%s %d\n", BootID(), pid)
	err := lock.Truncate(0)
	if err == nil {
		_, err = lock.WriteAt([]byte(text), 0)
	}
	if err != nil {
		return fmt.Errorf("sign the lock of %s %s: %w", w.Kind, w.Name, err)
	}
	return nil
}

// Controller reports whether a controller is alive, in which boot one ran last, and its pid.
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

// ControllerKilled reports whether a controller ran in this boot and has not ended by itself.
func (w Workload) ControllerKilled() bool {
	alive, boot, _ := w.Controller()
	return !alive && boot != "" && boot == BootID()
}

// Remove removes the workload with this UID: its object, its controller's records and its lock. A workload of the same
// name that was made since stays; "" is a workload whose object is gone.
func (w Workload) Remove(uid string) error {
	lock, err := w.dirs.LockObjects()
	if err != nil {
		return err
	}
	defer lock.Close()
	if o, err := w.Object(); err == nil && o.UID != uid {
		return nil
	}
	err = w.dirs.DeleteObject(w.Kind, w.Namespace, w.Name)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	paths := []string{w.controller, w.data + ".json", w.data + ".lock"}
	halves, _ := filepath.Glob(filepath.Join(filepath.Dir(w.data), "."+w.Name+".json.*")) // of a killed writer; a name has no pattern
	for _, path := range append(halves, paths...) {
		if rerr := os.Remove(path); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	os.Remove(filepath.Dir(w.data)) // if that was the last workload of the namespace
	os.Remove(filepath.Dir(w.controller))
	if err != nil {
		return fmt.Errorf("remove %s %s: %w", w.Kind, w.Name, err)
	}
	return nil
}

// BootID returns the kernel's id of this boot, or "" if it has none.
func BootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
