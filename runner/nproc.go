package runner

import (
	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/cgroups"
)

// processLimit stands in for pids.max where there is no cgroup: the kernel counts
// the processes of each user of the pod's user namespace, and no capability in
// there lifts it.
func processLimit() []configs.Rlimit {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &own); err != nil {
		return nil
	}
	n := min(uint64(cgroups.DefaultPids), own.Max)
	return []configs.Rlimit{{Type: unix.RLIMIT_NPROC, Hard: n, Soft: n}}
}
