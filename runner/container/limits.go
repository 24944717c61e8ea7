package container

import (
	"math"
	"os"
	"strings"

	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/cgroups"
	"github.com/podrun/podrun/runner/sandbox"
)

// applyLimits adds what the specification of a container has no words for.
func (x *Container) applyLimits(s *sandbox.Sandbox, config *configs.Config) {
	if u := s.Plan.Users; u != nil {
		own := []configs.IDMap{{HostID: int64(u.First), Size: int64(u.Count)}}
		config.UIDMappings, config.GIDMappings = own, own
	}
	config.AppArmorProfile = x.Plan.AppArmor
	config.Rlimits = coreLimit()
	if s.Cgroup == nil { // libcontainer tries whether it may make cgroups nevertheless
		config.Cgroups.Name = FullID(s.Plan, x) // no other pod's container has it
		if !cgroup2Only() && !sandbox.RootIsHostRoot() {
			// Where it would is said, else it reads for each of 13 hierarchies which one is the supervisor's.
			config.Cgroups.Parent = "/"
		}
		config.Rlimits = append(config.Rlimits, processLimit()...)
	}
}

// corePattern says what becomes of the memory of a program that crashes.
const corePattern = "/proc/sys/kernel/core_pattern"

// coreLimit keeps what a crash leaves in the container. A pattern that begins with | has
// the kernel start a program of the host's, as root, with the container's memory as its
// input, whatever the limit is, but for 1: that is what such programs have themselves, so
// that their crashes start none (fs/coredump.c). Else a file is written, by the rights and
// in the directories of who has crashed: not by default, and for who raises the soft limit.
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

// joinUserNamespace puts a container into the pod's own user namespace, if there is one, whose ids
// are the supervisor's. libcontainer would start a process to find that out.
func joinUserNamespace(userns string, config *configs.Config) {
	if userns == "" {
		return
	}
	same := []configs.IDMap{{Size: math.MaxUint32}}
	config.Namespaces.Add(configs.NEWUSER, userns)
	config.UIDMappings, config.GIDMappings = same, same
}

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
