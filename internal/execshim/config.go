// Package execshim is the Go side of the exec shim: the last program of podrun that a process
// executes before the container's own program. It is a few kilobytes of C without a C library
// (c/execshim.c), on a read-only file system of its own (see Program). The exec shim loads a compiled system call filter. It
// can also make a process in a running container, as libcontainer would, in a tenth of the time.
package execshim

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/protocol"
)

// Config describes a process at the moment when its program is executed.
type Config struct {
	UID, GID        int
	Groups          []int // with SetGroups; without it the kernel refuses to set them, and there are none
	SetGroups       bool
	Bounding        uint64 // capabilities, by their bits
	Permitted       uint64 // and effective capabilities; none are inheritable or ambient
	NoNewPrivileges bool
	Filter          Filter
	AppArmor        string // the profile that the process changes to at that moment, or ""
	Label           string // SELinux label of the process from that moment on, or ""; it excludes AppArmor
	TimerSlack      int    // nanoseconds; 0: inherited

	// FilterEarly makes Exec load the filter before the process is in the container. The filter
	// must permit the system calls that make a process (clone, setsid, pipe2, capset). A filter
	// that does not is loaded as the last step.
	FilterEarly bool

	// The following fields are for Exec only.
	Namespaces uintptr // unix.CLONE_NEW…, namespaces of the target to enter
	OOMScore   *int    // for /proc/self/oom_score_adj
	Limits     []Limit
	Cwd        string // a path in the container
}

// Filter is a system call filter in the kernel's format. The zero Filter is none.
type Filter struct {
	Flags   uint32 // unix.SECCOMP_FILTER_FLAG_…
	Program []byte // struct sock_filter, in the machine's byte order
}

// FilterStep is the size of an instruction of a Filter's program.
const (
	FilterStep = 8
	limitSize  = 3 * 8
	groupSize  = 4
)

// Limit is a resource limit.
type Limit struct {
	Type       int // unix.RLIMIT_…
	Soft, Hard uint64
}

// header is struct config of config.h.
type header struct {
	Magic, Flags                             uint32
	UID, GID                                 uint32
	Namespaces                               uint32
	FilterFlags, Limits, Groups, Filter, Cwd uint32
	OOMLength                                uint32
	OOMScore                                 [8]byte
	AppArmor                                 uint32
	TimerSlack                               uint64
	Bounding, Permitted                      uint64
}

// encode returns the configuration in the format that the exec shim reads.
func (o *Config) encode(join bool) ([]byte, error) {
	steps := len(o.Filter.Program) / FilterStep
	switch {
	case len(o.Filter.Program)%FilterStep != 0 || steps > protocol.MaxShimFilter:
		return nil, fmt.Errorf("a filter for system calls of %d bytes", len(o.Filter.Program))
	case len(o.Groups) > protocol.MaxShimGroups:
		return nil, fmt.Errorf("%d groups of a process, of which there can be %d", len(o.Groups), protocol.MaxShimGroups)
	case len(o.Limits) > protocol.MaxShimLimits:
		return nil, fmt.Errorf("%d limits of a process", len(o.Limits))
	case len(o.Cwd) >= protocol.MaxShimPath:
		return nil, fmt.Errorf("change to the working directory: %w", unix.ENAMETOOLONG)
	case len(o.AppArmor) > protocol.MaxShimPath/2 || len(o.Label) > protocol.MaxShimPath/2:
		return nil, fmt.Errorf("change to the AppArmor profile or the SELinux label: %w", unix.ENAMETOOLONG)
	}
	profile := o.Label
	if o.AppArmor != "" && o.Label == "" {
		profile = "exec " + o.AppArmor
	}
	h := header{
		Magic: protocol.ShimMagic, UID: uint32(o.UID), GID: uint32(o.GID), Namespaces: uint32(o.Namespaces), FilterFlags: o.Filter.Flags,
		Limits: uint32(len(o.Limits)), Groups: uint32(len(o.Groups)), Filter: uint32(steps), Cwd: uint32(len(o.Cwd) + 1),
		AppArmor: uint32(len(profile)), TimerSlack: uint64(o.TimerSlack), Bounding: o.Bounding, Permitted: o.Permitted,
	}
	for flag, set := range map[uint32]bool{protocol.ShimExec: join, protocol.ShimNoNewPrivs: o.NoNewPrivileges, protocol.ShimFilterEarly: o.FilterEarly, protocol.ShimSetGroups: o.SetGroups, protocol.ShimLabel: o.Label != ""} {
		if set {
			h.Flags |= flag
		}
	}
	if o.OOMScore != nil {
		h.OOMLength = uint32(copy(h.OOMScore[:], fmt.Sprint(*o.OOMScore)))
	}
	machine := binary.NativeEndian
	b := make([]byte, 0, binary.Size(h)+len(o.Limits)*limitSize+len(o.Groups)*groupSize+len(o.Filter.Program)+len(o.Cwd)+1+len(profile))
	b, _ = binary.Append(b, machine, h) // of a fixed size: it cannot fail
	for _, l := range o.Limits {
		for _, v := range [...]uint64{uint64(l.Type), l.Soft, l.Hard} {
			b = machine.AppendUint64(b, v)
		}
	}
	for _, g := range o.Groups {
		b = machine.AppendUint32(b, uint32(g))
	}
	b = append(b, o.Filter.Program...)
	b = append(b, o.Cwd...)
	b = append(b, 0)
	return append(b, profile...), nil
}
