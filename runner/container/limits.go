package container

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/cgroups"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/runner/sandbox"
)

// completeConfig sets what CreateLibcontainerConfig does not take from runtimeSpec: id maps, the AppArmor
// profile, rlimits, the cgroup's name.
func (x *Container) completeConfig(s *sandbox.Sandbox, config *configs.Config) {
	if u := s.Plan.Users; u != nil {
		maps := []configs.IDMap{{HostID: int64(u.First), Size: int64(u.Count)}}
		config.UIDMappings, config.GIDMappings = maps, maps
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
		config.Rlimits = append(config.Rlimits, processLimit()...)
	}
}

// corePattern is the file that defines where the kernel writes core dumps.
const corePattern = "/proc/sys/kernel/core_pattern"

// coreLimit returns the RLIMIT_CORE that keeps core dumps in the container. With a pattern that begins with
// | the kernel starts a program of the host as root, with the container's memory as its input, whatever the
// limit is. Only a limit of 1 prevents that: the kernel treats a process with this limit as such a program,
// and dumps nothing (fs/coredump.c). With another pattern the kernel writes a file with the rights and in the directories of the
// crashed process. The soft limit 0 prevents that; a process may raise it.
func coreLimit() []configs.Rlimit {
	var current unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &current); err != nil {
		return nil
	}
	limit := configs.Rlimit{Type: unix.RLIMIT_CORE, Hard: current.Max}
	if b, err := os.ReadFile(corePattern); err != nil || strings.HasPrefix(string(b), "|") {
		limit.Soft = min(1, current.Max)
		limit.Hard = limit.Soft
	}
	return []configs.Rlimit{limit}
}

type rlimit struct {
	name string
	kind int
}

// rlimits are the kernel's numbers of limits by docker's names.
var rlimits = [...]rlimit{
	{"as", unix.RLIMIT_AS}, {"cpu", unix.RLIMIT_CPU}, {"data", unix.RLIMIT_DATA}, {"fsize", unix.RLIMIT_FSIZE}, {"locks", unix.RLIMIT_LOCKS},
	{"memlock", unix.RLIMIT_MEMLOCK}, {"msgqueue", unix.RLIMIT_MSGQUEUE}, {"nice", unix.RLIMIT_NICE}, {"nofile", unix.RLIMIT_NOFILE},
	{"nproc", unix.RLIMIT_NPROC}, {"rss", unix.RLIMIT_RSS}, {"rtprio", unix.RLIMIT_RTPRIO}, {"rttime", unix.RLIMIT_RTTIME},
	{"sigpending", unix.RLIMIT_SIGPENDING}, {"stack", unix.RLIMIT_STACK},
}

// ownLimit returns this process's hard limit, above which only root of the host raises one.
func ownLimit(kind int) uint64 {
	var current unix.Rlimit
	if sandbox.RootIsHostRoot() || unix.Getrlimit(kind, &current) != nil {
		return math.MaxUint64
	}
	return current.Max
}

// withUlimits adds a container's own limits. A limit that podrun sets stays if it is lower. highest returns the
// highest limit of a kind.
func withUlimits(limits []configs.Rlimit, ulimits []pod.Ulimit, highest func(kind int) uint64) ([]configs.Rlimit, error) {
	for _, u := range ulimits {
		i := slices.IndexFunc(rlimits[:], func(l rlimit) bool { return l.name == u.Name })
		if i < 0 {
			return nil, fmt.Errorf("set ulimit %s: there is no such limit", u.Name)
		}
		kind := rlimits[i].kind
		if n := highest(kind); u.Hard > n {
			return nil, fmt.Errorf("set ulimit %s: %s is above the hard limit of the user of podrun, %d: lower it, or raise the user's in /etc/security/limits.conf", u.Name, limitText(u.Hard), n)
		}
		l := configs.Rlimit{Type: kind, Soft: u.Soft, Hard: u.Hard}
		if i := slices.IndexFunc(limits, func(l configs.Rlimit) bool { return l.Type == kind }); i >= 0 {
			l.Soft, l.Hard = min(l.Soft, limits[i].Soft), min(l.Hard, limits[i].Hard)
			limits[i] = l
		} else {
			limits = append(limits, l)
		}
	}
	return limits, nil
}

func limitText(n uint64) string {
	if n == math.MaxUint64 {
		return "no limit"
	}
	return strconv.FormatUint(n, 10)
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

// userPids is the number of processes and threads that all pods of a user without a cgroup may have together: the processes
// of two pods that use up cgroups.DefaultPids, or of 200 that start at once, with 20 each.
const userPids = 2 * uint64(cgroups.DefaultPids)

// processLimit returns the RLIMIT_NPROC that replaces pids.max where there is no cgroup. The kernel counts the
// processes of each user of the pods' user namespace, and no capability in that namespace lifts the limit. A quarter
// of the user's own limit stays free, so that commands can stop a pod that has used up the limit.
func processLimit() []configs.Rlimit {
	var current unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &current); err != nil {
		return nil
	}
	n := min(userPids, current.Max-current.Max/4)
	return []configs.Rlimit{{Type: unix.RLIMIT_NPROC, Hard: n, Soft: n}}
}
