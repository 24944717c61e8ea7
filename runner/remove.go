package runner

import (
	"fmt"
	"os"

	"github.com/podrun/podrun/cgroups"
	"github.com/podrun/podrun/volumes"
)

// removeFiles removes what only root of the pod's user namespace can: volumes and
// root file systems, whose files belong to subordinate ids, and a cgroup that a
// killed supervisor has left. The pod must be dead or its containers gone.
func removeFiles(args []string) int {
	_, place, err := podOf(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	code := 0
	for _, dir := range []string{place.VolumesDir(), place.RootfsDir()} {
		if err := volumes.RemoveTree(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if st, err := place.Status(); err == nil && st.Cgroup != "" {
		if err := cgroups.Remove(st.Cgroup); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}
