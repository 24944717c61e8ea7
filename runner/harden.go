package runner

import (
	"math"
	"os"
	"strings"

	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"
)

// harden adds what the specification of a container has no words for.
func (x *container) harden(s *sandbox, config *configs.Config) {
	if u := s.plan.Users; u != nil {
		own := []configs.IDMap{{HostID: int64(u.First), Size: int64(u.Count)}}
		config.UIDMappings, config.GIDMappings = own, own
	}
	config.AppArmorProfile = x.plan.AppArmor
	config.Rlimits = coreLimit()
	if s.cgroup == nil { // libcontainer tries whether it may make cgroups nevertheless
		config.Cgroups.Name = containerID(s.plan, x) // no other pod's container has it
		if !unified() && !mapsRoot() {
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

// joinUser puts a container into the pod's own user namespace, if there is one, whose ids
// are the supervisor's. libcontainer would start a process to find that out.
func joinUser(userns string, config *configs.Config) {
	if userns == "" {
		return
	}
	same := []configs.IDMap{{Size: math.MaxUint32}}
	config.Namespaces.Add(configs.NEWUSER, userns)
	config.UIDMappings, config.GIDMappings = same, same
}
