package store

import (
	"errors"
	"io/fs"
	"os"
)

// Cleared says whether the last supervisor of a pod that has ended left nothing that takes
// its user namespace to be removed, as it does unless it was killed: then Remove removes it all.
func (p Pod) Cleared() bool {
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
