// Package trampoline is the last program of podrun's that a process of a container runs
// before its own: a few kilobytes of C without a C library (c/trampoline.c), executed from
// a sealed memfd. It loads a compiled filter for system calls, and it can make a process in
// a container that runs, as libcontainer would, in a tenth of the time.
package trampoline

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// Config is what a process is to be when its program is executed.
type Config struct {
	UID, GID        int
	Groups          []int // with SetGroups; without it the kernel does not let us, and there are none
	SetGroups       bool
	Bounding        uint64 // capabilities, by their bits
	Permitted       uint64 // and effective ones; none are inheritable or ambient
	NoNewPrivileges bool
	Filter          Filter
	AppArmor        string // the profile that it changes to then, or ""
	Label           string // of SELinux, that it has then, or ""; where there is one there is no AppArmor

	// FilterEarly has Join load the filter before the process is in the container. The filter
	// must let pass what makes a process (clone, setsid, pipe2, capset); any other is
	// loaded as the last step.
	FilterEarly bool

	// These are for Join alone.
	Namespaces uintptr // unix.CLONE_NEW…, those of the target that are to be entered
	OOMScore   *int    // of /proc/self/oom_score_adj
	Limits     []Limit
	Cwd        string // a path in the container
}

// Filter is a filter for system calls as the kernel takes it. The zero Filter is none.
type Filter struct {
	Flags   uint32 // unix.SECCOMP_FILTER_FLAG_…
	Program []byte // struct sock_filter, in the machine's byte order
}

// FilterStep is the size of a step of a Filter's program; maxima of config.h follow.
const (
	FilterStep = 8
	MaxFilter  = 4096
	MaxGroups  = 4096

	maxLimits = 16
	limitSize = 3 * 8
	groupSize = 4
	maxPath   = 4096
)

// Limit is a limit of resources.
type Limit struct {
	Type       int // unix.RLIMIT_…
	Soft, Hard uint64
}

// PreExecName is that of a process until it executes its program, as the kernel tells it
// (/proc/PID/stat). config.h has it.
const PreExecName = "podrun-start"

// config.h has these.
const (
	magic = 0x70727431

	flagExec       = 1
	flagNoNewPrivs = 2
	flagEarly      = 4
	flagSetGroups  = 8
	flagLabel      = 16
)

// header is struct order.
type header struct {
	Magic, Flags                             uint32
	UID, GID                                 uint32
	Namespaces                               uint32
	FilterFlags, Limits, Groups, Filter, Cwd uint32
	OOMLength                                uint32
	OOMScore                                 [8]byte
	AppArmor                                 uint32
	Bounding, Permitted                      uint64
}

// encode is the order as the program reads it.
func (o *Config) encode(join bool) ([]byte, error) {
	steps := len(o.Filter.Program) / FilterStep
	switch {
	case len(o.Filter.Program)%FilterStep != 0 || steps > MaxFilter:
		return nil, fmt.Errorf("a filter for system calls of %d bytes", len(o.Filter.Program))
	case len(o.Groups) > MaxGroups:
		return nil, fmt.Errorf("%d groups of a process, of which there can be %d", len(o.Groups), MaxGroups)
	case len(o.Limits) > maxLimits:
		return nil, fmt.Errorf("%d limits of a process", len(o.Limits))
	case len(o.Cwd) >= maxPath:
		return nil, fmt.Errorf("change to the working directory: %w", unix.ENAMETOOLONG)
	case len(o.AppArmor) > maxPath/2 || len(o.Label) > maxPath/2:
		return nil, fmt.Errorf("change to the AppArmor profile or the SELinux label: %w", unix.ENAMETOOLONG)
	}
	profile := o.Label
	if o.AppArmor != "" && o.Label == "" {
		profile = "exec " + o.AppArmor
	}
	h := header{
		Magic: magic, UID: uint32(o.UID), GID: uint32(o.GID), Namespaces: uint32(o.Namespaces), FilterFlags: o.Filter.Flags,
		Limits: uint32(len(o.Limits)), Groups: uint32(len(o.Groups)), Filter: uint32(steps), Cwd: uint32(len(o.Cwd) + 1),
		AppArmor: uint32(len(profile)), Bounding: o.Bounding, Permitted: o.Permitted,
	}
	for flag, set := range map[uint32]bool{flagExec: join, flagNoNewPrivs: o.NoNewPrivileges, flagEarly: o.FilterEarly, flagSetGroups: o.SetGroups, flagLabel: o.Label != ""} {
		if set {
			h.Flags |= flag
		}
	}
	if o.OOMScore != nil {
		h.OOMLength = uint32(copy(h.OOMScore[:], fmt.Sprint(*o.OOMScore)))
	}
	machine := binary.NativeEndian
	b := make([]byte, 0, binary.Size(h)+len(o.Limits)*limitSize+len(o.Groups)*groupSize+len(o.Filter.Program)+len(o.Cwd)+1+len(profile))
	b, _ = binary.Append(b, machine, h) // of a fixed size: it does not fail
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
