package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// leavingFile marks, in the runtime directory, a pod that is removed when it has ended. The
// guard reads it, too (internal/stage/userns/guard.c).
const leavingFile = "leaving"

// MarkLeaving records that the pod is to be removed when it has ended. The record outlives the
// pod's processes, but not the machine.
func (p Pod) MarkLeaving() error {
	if err := os.WriteFile(filepath.Join(p.runtime, leavingFile), nil, 0o600); err != nil {
		return fmt.Errorf("record that pod %s is to be removed: %w", p.Name, err)
	}
	return nil
}

// Leaving returns whether the pod is to be removed when it has ended.
func (p Pod) Leaving() bool {
	_, err := os.Lstat(filepath.Join(p.runtime, leavingFile))
	return err == nil
}

// Traces returns whether anything is left of a pod, even if it is half made or half removed.
func (p Pod) Traces() bool {
	for _, dir := range []string{p.data, p.runtime} {
		if _, err := os.Lstat(dir); err == nil {
			return true
		}
	}
	return false
}

// RemoveOwn is Remove for a process of the pod, which holds the lock itself: the lock and the
// mark of MarkLeaving stay. The guard removes them when the pod's last process has ended, so
// that nobody uses the pod's name before.
func (p Pod) RemoveOwn() error {
	if err := p.removeData(); err != nil {
		return fmt.Errorf("remove pod %s: %w", p.Name, err)
	}
	os.Remove(filepath.Dir(p.data)) // the namespace's directory, if this was its last pod
	if err := p.emptyRuntime(p.lockFile(), filepath.Join(p.runtime, leavingFile)); err != nil {
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
