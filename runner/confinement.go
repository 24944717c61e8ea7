package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/moby/sys/capability"
	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runc/libcontainer/specconv"
	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podrun/podrun/internal/stage/trampoline"
	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/runner/filter"
)

// confinement is how a container's processes get their filter for system calls, their
// AppArmor profile and their SELinux label: by libcontainer, which compiles the filter in each of them, or compiled,
// by the trampoline.
type confinement struct {
	by     *trampoline.Program // nil: libcontainer
	filter trampoline.Filter
	own    bool   // the filter is of a profile of the user's own, who may have forbidden anything
	key    string // of what is kept of it
	homes  homes

	profile string // of AppArmor, that the trampoline asks for
	label   string // the same of SELinux
}

// carriedTrampoline is this program's own, or nil if it has none, or the host has no
// place for it.
var carriedTrampoline = sync.OnceValue(func() *trampoline.Program {
	if trampoline.Carried() == nil {
		return nil
	}
	p, err := trampoline.Seal(trampoline.Carried())
	if err != nil {
		fmt.Fprintln(os.Stderr, "containers are started without the trampoline:", err)
		return nil
	}
	return p
})

// confine takes filter and profile out of a container's configuration, if the trampoline
// sees to them.
func confine(s *sandbox, c *pod.Container, config *configs.Config) (f confinement, err error) {
	if s.trampoline == nil || config.Seccomp != nil && !filter.Compilable(config.Seccomp) {
		return confinement{}, nil
	}
	f = confinement{by: s.trampoline, own: c.Seccomp != nil, homes: homes{&sync.Map{}}}
	// A profile is for the container's program: libcontainer would have it begin with the trampoline.
	f.profile, config.AppArmorProfile = config.AppArmorProfile, ""
	f.label, config.ProcessLabel = config.ProcessLabel, ""
	if config.Seccomp == nil {
		return f, nil
	}
	if c.Seccomp == nil { // the default, which depends on nothing else
		caps := strings.Join(c.Capabilities, ",")
		if known, ok := s.filters.Load(caps); ok {
			f.key, f.filter = known.(confinement).key, known.(confinement).filter
			config.Seccomp = nil
			return f, nil
		}
		defer func() {
			if err == nil {
				s.filters.Store(caps, confinement{key: f.key, filter: f.filter})
			}
		}()
	}
	err = f.compile(s.store.Filters(), config.Seccomp)
	if err == nil {
		config.Seccomp = nil
	}
	return f, err
}

// compile finds the filter of a profile, or makes it.
func (f *confinement) compile(dir string, profile *configs.Seccomp) (err error) {
	if f.key, err = filter.Key(profile); err != nil {
		return err
	}
	if f.filter, err = filter.Kept(dir, f.key); errors.Is(err, os.ErrNotExist) {
		f.filter, err = filter.Make(dir, f.key, profile)
	}
	return err
}

// confined is confine for a container that runs: key is of the filter that it was started
// with. A filter that is not kept any more is made again.
func confined(s *sandbox, c *pod.Container, ct *libcontainer.Container, key string) (confinement, error) {
	config := ct.Config()
	if config.Seccomp != nil {
		return confinement{}, nil
	}
	f := confinement{by: s.trampoline, own: c.Seccomp != nil, key: key, homes: homes{&sync.Map{}}}
	if config.AppArmorProfile == "" {
		f.profile = c.AppArmor
	}
	if config.ProcessLabel == "" {
		f.label = c.Label
	}
	if key == "" {
		return f, nil
	}
	if s.trampoline == nil {
		return f, errors.New("the trampoline that loads its filter for system calls is gone")
	}
	var err error
	if f.filter, err = filter.Kept(s.store.Filters(), filepath.Base(key)); !errors.Is(err, os.ErrNotExist) {
		return f, err
	}
	caps := &specs.LinuxCapabilities{Bounding: c.Capabilities}
	profile, err := seccompFilter(c, &specs.Spec{Process: &specs.Process{Capabilities: caps}, Linux: &specs.Linux{}})
	if err != nil {
		return f, err
	}
	compilable, err := specconv.SetupSeccomp(profile)
	if err != nil {
		return f, err
	}
	return f, f.compile(s.store.Filters(), compilable)
}

// order says what a process of the container is to be.
func (f *confinement) order(p *libcontainer.Process) *trampoline.Order {
	return &trampoline.Order{
		UID: p.UID, GID: p.GID, Groups: p.AdditionalGroups,
		Bounding: capabilityBits(p.Capabilities.Bounding), Permitted: capabilityBits(p.Capabilities.Permitted),
		NoNewPrivileges: *p.NoNewPrivileges, Filter: f.filter, Early: !f.own, Cwd: p.Cwd, AppArmor: f.profile, Label: f.label,
	}
}

// bounce has libcontainer execute the trampoline in place of the process's program, with
// the rights that takes. It returns nil if libcontainer does all.
func (f *confinement) bounce(p *libcontainer.Process) (*trampoline.Bounce, error) {
	if f.by == nil {
		return nil, nil
	}
	b, err := f.by.Bounce(f.order(p), p.Args)
	if err != nil {
		return nil, err
	}
	p.Args = b.Args(p.Args)
	p.ExtraFiles = b.Files()
	// Ambient ones survive an execve of who is not root.
	caps := append(capabilityNames(trampoline.Needs), p.Capabilities.Permitted...)
	bounding := append(capabilityNames(trampoline.Needs), p.Capabilities.Bounding...)
	p.Capabilities = &configs.Capabilities{Bounding: bounding, Effective: caps, Permitted: caps, Inheritable: caps, Ambient: caps}
	return b, nil
}

// capabilityBit is the kernel's number of each capability, by its name with CAP_.
var capabilityBit = sync.OnceValue(func() map[string]int {
	bits := map[string]int{}
	for _, c := range capability.ListKnown() {
		bits["CAP_"+strings.ToUpper(c.String())] = int(c)
	}
	return bits
})

// capabilityBits are the kernel's. Names that it does not know are none, as with libcontainer.
func capabilityBits(names []string) (bits uint64) {
	for _, name := range names {
		if n, ok := capabilityBit()[name]; ok {
			bits |= 1 << n
		}
	}
	return bits
}

func capabilityNames(bits uint64) (names []string) {
	for name, n := range capabilityBit() {
		if bits>>n&1 != 0 {
			names = append(names, name)
		}
	}
	return names
}
