package runner

import (
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
	if s.cgroup == nil {
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
