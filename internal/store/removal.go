package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// removingFile marks, in the runtime directory, a pod that is removed when it has ended. The
// guard reads it, too (internal/stage/userns/guard.c).
const removingFile = "leaving"

// MarkRemoving records that the pod is to be removed when it has ended. The record outlives the
// pod's processes, but not the machine.
func (p Pod) MarkRemoving() error {
	if err := os.WriteFile(filepath.Join(p.runtime, removingFile), nil, 0o600); err != nil {
		return fmt.Errorf("record that pod %s is to be removed: %w", p.Name, err)
	}
	return nil
}

// Removing returns whether the pod is to be removed when it has ended.
func (p Pod) Removing() bool {
	_, err := os.Lstat(filepath.Join(p.runtime, removingFile))
	return err == nil
}

// HasRemains returns whether anything is left of a pod, even if it is half made or half removed.
func (p Pod) HasRemains() bool {
	for _, dir := range []string{p.data, p.runtime} {
		if _, err := os.Lstat(dir); err == nil {
			return true
		}
	}
	return false
}

// RemoveSelf is Remove for a process of the pod, which holds the lock itself: the lock and the
// mark of MarkRemoving stay. The guard removes them when the pod's last process has ended, so
// that nobody uses the pod's name before.
func (p Pod) RemoveSelf() error {
	if err := p.removeData(); err != nil {
		return fmt.Errorf("remove pod %s: %w", p.Name, err)
	}
	os.Remove(filepath.Dir(p.data)) // the namespace's directory, if this was its last pod
	if err := p.emptyRuntime(p.lockFile(), filepath.Join(p.runtime, removingFile)); err != nil {
		return fmt.Errorf("remove pod %s: %w", p.Name, err)
	}
	return nil
}

// removeData deletes the data directory, the plan first: a removal that is cut off leaves no
// half pod to be listed as whole.
func (p Pod) removeData() error {
	if err := os.Remove(filepath.Join(p.data, planFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(p.data)
}

// OwnsNothing says whether the last supervisor of a pod that has ended left nothing that takes
// its user namespace to be removed, as it does unless it was killed: then Remove removes it all.
func (p Pod) OwnsNothing() bool {
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
