package container

import (
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/cgroups"
	"github.com/podrun/podrun/runner/sandbox"
)

// completeConfig sets what CreateLibcontainerConfig does not take from runtimeSpec: id maps, the AppArmor
// profile, rlimits, the cgroup's name.
func (x *Container) completeConfig(s *sandbox.Sandbox, config *configs.Config) {
	if u := s.Plan.Users; u != nil {
		own := []configs.IDMap{{HostID: int64(u.First), Size: int64(u.Count)}}
		config.UIDMappings, config.GIDMappings = own, own
	}
	config.AppArmorProfile = x.Plan.AppArmor
	config.Rlimits = coreLimit()
	if s.Cgroup == nil { // otherwise libcontainer would try to make cgroups anyway
		config.Cgroups.Name = FullID(s.Plan, x) // unique among all pods
		if !cgroup2Only() && !sandbox.RootIsHostRoot() {
			// With a parent set libcontainer does not look up the supervisor's cgroup in each of 13
			// hierarchies.
			config.Cgroups.Parent = "/"
		}
		config.Rlimits = append(config.Rlimits, processLimit(processesNow())...)
	}
}

// corePattern is the file that defines where the kernel writes core dumps.
const corePattern = "/proc/sys/kernel/core_pattern"

// coreLimit returns the RLIMIT_CORE that keeps core dumps in the container. With a pattern that begins with
// | the kernel starts a program of the host as root, with the container's memory as its input, whatever the
// limit is. Only a limit of 1 prevents that: the kernel takes a process with it for such a program itself
// (fs/coredump.c). With another pattern the kernel writes a file with the rights and in the directories of the
// crashed process. The soft limit 0 prevents that; a process may raise it.
func coreLimit() []configs.Rlimit {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &own); err != nil {
		return nil
	}
	limit := configs.Rlimit{Type: unix.RLIMIT_CORE, Hard: own.Max}
	if b, err := os.ReadFile(corePattern); err != nil || strings.HasPrefix(string(b), "|") {
		limit.Soft = min(1, own.Max)
		limit.Hard = limit.Soft
	}
	return []configs.Rlimit{limit}
}

// joinUserNamespace puts a container into the pod's own user namespace, if there is one, with the
// supervisor's id mapping. Without a mapping libcontainer would start a process to read it.
func joinUserNamespace(userns string, config *configs.Config) {
	if userns == "" {
		return
	}
	same := []configs.IDMap{{Size: math.MaxUint32}}
	config.Namespaces.Add(configs.NEWUSER, userns)
	config.UIDMappings, config.GIDMappings = same, same
}

// processLimit returns the RLIMIT_NPROC that replaces pids.max where there is no cgroup. The kernel counts the
// processes of each user of the pods' user namespace, and no capability in that namespace lifts the limit. A quarter
// of the user's own limit stays free, so that commands can stop a pod that has used up the limit.
func processLimit(now uint64) []configs.Rlimit {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &own); err != nil {
		return nil
	}
	n := min(now+otherPods+uint64(cgroups.DefaultPids), own.Max-own.Max/4)
	return []configs.Rlimit{{Type: unix.RLIMIT_NPROC, Hard: n, Soft: n}}
}

// otherPods is the number of processes and threads that the limit leaves for pods that start later, because they
// count too: of 300 pods, whose supervisors have most of them while they start.
const otherPods = 3 * uint64(cgroups.DefaultPids)

// processesNow returns how many processes and threads the machine has: at least those of the user. A PID namespace
// hides them from /proc, but not from this number.
func processesNow() uint64 {
	b, err := os.ReadFile("/proc/loadavg") // 0.20 0.18 0.12 1/80 11206
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), "/")
	all, _, _ := strings.Cut(rest, " ")
	n, _ := strconv.ParseUint(all, 10, 32)
	return n
}
