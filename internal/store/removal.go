package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/podrun/podrun/internal/protocol"
)

// MarkRemoving records that the pod is to be removed when it has ended. The record outlives the
// pod's processes, but not a reboot.
func (p Pod) MarkRemoving() error {
	if err := os.WriteFile(filepath.Join(p.runtime, protocol.FileRemoving), nil, 0o600); err != nil {
		return fmt.Errorf("record that pod %s is to be removed: %w", p.Name, err)
	}
	return nil
}

// Removing reports whether the pod is to be removed when it has ended.
func (p Pod) Removing() bool {
	_, err := os.Lstat(filepath.Join(p.runtime, protocol.FileRemoving))
	return err == nil
}

// RemovalInterrupted reports whether the pod's processes were killed before they could remove it.
func (p Pod) RemovalInterrupted() bool { return p.Removing() && !p.Alive() }

// HasRemains reports whether anything is left of a pod, even if it is half made or half removed.
func (p Pod) HasRemains() bool {
	for _, dir := range []string{p.data, p.runtime} {
		if _, err := os.Lstat(dir); err == nil {
			return true
		}
	}
	return false
}

// RemoveSelf is Remove for a process of the pod, which holds the lock itself. The lock, the link to the runtime
// directory and the mark of MarkRemoving stay. The monitor removes them when the pod's last process has ended, so
// that the pod's name stays taken until then.
func (p Pod) RemoveSelf() error {
	if err := errors.Join(p.removeData(protocol.FileLock, protocol.FileRuntime), emptyDir(p.runtime, protocol.FileRemoving)); err != nil {
		return fmt.Errorf("remove pod %s: %w", p.Name, err)
	}
	return nil
}

// removeData empties the data directory except for the files whose names are in but, the plan first: an interrupted
// removal leaves no partial pod that is listed as complete.
func (p Pod) removeData(but ...string) error {
	if err := removeExisting(filepath.Join(p.data, planFile)); err != nil {
		return err
	}
	if err := p.removeLogs(); err != nil {
		return err
	}
	return emptyDir(p.data, but...)
}

// CanRemoveDirectly reports whether the last supervisor of an ended pod left no files of its user
// namespace, so that Remove can delete everything. This is so unless the supervisor was killed.
func (p Pod) CanRemoveDirectly() bool {
	st, err := p.Status()
	if err != nil {
		return false
	}
	for _, dir := range []string{p.VolumesDir(), p.RootfsDir(), st.Cgroup} {
		if dir == "" { // it had no cgroup
			continue
		}
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}
