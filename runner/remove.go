package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/podrun/podrun/cgroups"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/volumes"
)

// removeFiles removes what only root of the pod's user namespace can remove: volumes and root file systems,
// whose files belong to subordinate ids, and the cgroup that is left of a killed supervisor. The pod must be
// dead, or its containers gone.
func removeFiles(args []string) int {
	_, p, err := podOf(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	code := 0
	for _, dir := range []string{p.VolumesDir(), p.RootfsDir()} {
		if err := volumes.RemoveTree(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if st, err := p.Status(); err == nil && st.Cgroup != "" {
		if err := cgroups.Remove(st.Cgroup); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}

// removeSelf removes the directories of a pod that ends, from its own mount namespace. It does not descend
// into mounts: a mount that could not be removed may be a directory of the host. The monitor removes the
// rest where nothing is mounted.
func removeSelf(p store.Pod) error {
	for _, dir := range []string{p.RuntimeDir(), p.DataDir()} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove pod %s: %w", p.Name, err)
		}
		for _, e := range entries {
			if !e.IsDir() {
				continue
			}
			if err := volumes.RemoveTree(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return p.RemoveSelf()
}

// removePod removes a whole pod that no other process removes. The monitor executes it in its own process,
// with the pod's lock.
func removePod(args []string) int {
	code := removeFiles(args)
	_, p, err := podOf(args)
	if err == nil {
		err = p.Remove()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// removeVolume removes the directory of a claim or of a PersistentVolume.
func removeVolume(args []string) int {
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "want 1 argument, have", len(args))
		return 125
	}
	if err := volumes.RemoveTree(args[0]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	os.Remove(filepath.Dir(args[0])) // if this was its last volume
	return 0
}
