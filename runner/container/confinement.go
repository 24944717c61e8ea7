package container

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	seccompprofile "github.com/moby/profiles/seccomp"
	"github.com/moby/sys/capability"
	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runc/libcontainer/specconv"
	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podrun/podrun/internal/execshim"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/timerslack"
	"github.com/podrun/podrun/runner/filter"
	"github.com/podrun/podrun/runner/sandbox"
)

// confinement describes how a container's processes get their seccomp filter, their AppArmor profile and
// their SELinux label: from libcontainer, which compiles the filter in each process, or from the exec shim,
// which loads a compiled filter.
type confinement struct {
	program   *execshim.Program // nil: libcontainer does it
	filter    execshim.Filter
	custom    bool   // the filter comes from a profile of the user, which may forbid any system call
	filterKey string // key of the stored filter
	homes     homeDirs

	appArmor string // AppArmor profile that the exec shim sets
	label    string // SELinux label, likewise
}

// EmbeddedShim returns this program's embedded exec shim, or nil if it has none or the host has no
// place for the file.
var EmbeddedShim = sync.OnceValue(func() *execshim.Program {
	if execshim.Embedded() == nil {
		return nil
	}
	p, err := execshim.NewProgram(execshim.Embedded())
	if err != nil {
		fmt.Fprintln(os.Stderr, "containers start without the exec shim:", err)
		return nil
	}
	return p
})

// newConfinement returns the confinement of a new container. It removes seccomp filter, AppArmor profile and
// SELinux label from libcontainer's configuration if the exec shim applies them instead.
func newConfinement(s *sandbox.Sandbox, c *pod.Container, config *configs.Config) (f confinement, err error) {
	if s.Shim == nil || canMount(c) || config.Seccomp != nil && !filter.Compilable(config.Seccomp) {
		return confinement{}, nil
	}
	f = confinement{program: s.Shim, custom: c.Seccomp != nil, homes: homeDirs{&sync.Map{}}}
	// The AppArmor profile is for the container's program: libcontainer would apply it to the exec shim already.
	f.appArmor, config.AppArmorProfile = config.AppArmorProfile, ""
	f.label, config.ProcessLabel = config.ProcessLabel, ""
	if config.Seccomp == nil {
		return f, nil
	}
	if c.Seccomp == nil { // the default profile depends only on the capabilities
		caps := strings.Join(c.Capabilities, ",")
		if known, ok := s.SeccompFilters.Load(caps); ok {
			f.filterKey, f.filter = known.(confinement).filterKey, known.(confinement).filter
			config.Seccomp = nil
			return f, nil
		}
		defer func() {
			if err == nil {
				s.SeccompFilters.Store(caps, confinement{filterKey: f.filterKey, filter: f.filter})
			}
		}()
	}
	err = f.compile(s.Pod.FiltersDir(), config.Seccomp)
	if err == nil {
		config.Seccomp = nil
	}
	return f, err
}

// canMount reports whether a container's processes can mount something over its /proc. libcontainer finds the exec shim there, if
// it makes a command: they could put a program of theirs in its place, which would run without filter, profile and label.
func canMount(c *pod.Container) bool { return slices.Contains(c.Capabilities, "CAP_SYS_ADMIN") }

// compile loads the stored filter of a profile, or compiles and stores it.
func (f *confinement) compile(dir string, profile *configs.Seccomp) (err error) {
	if f.filterKey, err = filter.Key(profile); err != nil {
		return err
	}
	if f.filter, err = filter.LoadCompiled(dir, f.filterKey); errors.Is(err, os.ErrNotExist) {
		f.filter, err = filter.Make(dir, f.filterKey, profile)
	}
	return err
}

// loadConfinement returns the confinement of a running container; key names the filter that it was started
// with. A filter that is not stored any more is compiled again.
func loadConfinement(s *sandbox.Sandbox, c *pod.Container, ct *libcontainer.Container, key string) (confinement, error) {
	config := ct.Config()
	if config.Seccomp != nil || canMount(c) && key == "" && config.AppArmorProfile == c.AppArmor && config.ProcessLabel == c.Label {
		return confinement{}, nil
	}
	f := confinement{program: s.Shim, custom: c.Seccomp != nil, filterKey: key, homes: homeDirs{&sync.Map{}}}
	if config.AppArmorProfile == "" {
		f.appArmor = c.AppArmor
	}
	if config.ProcessLabel == "" {
		f.label = c.Label
	}
	if key == "" {
		return f, nil
	}
	if s.Shim == nil {
		return f, errors.New("the exec shim that loads its seccomp filter is missing")
	}
	var err error
	if f.filter, err = filter.LoadCompiled(s.Pod.FiltersDir(), filepath.Base(key)); !errors.Is(err, os.ErrNotExist) {
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
	return f, f.compile(s.Pod.FiltersDir(), compilable)
}

// shimConfig returns the exec shim's configuration for a process of the container.
func (f *confinement) shimConfig(p *libcontainer.Process) *execshim.Config {
	return &execshim.Config{
		UID: p.UID, GID: p.GID, Groups: p.AdditionalGroups,
		Bounding: capabilityBits(p.Capabilities.Bounding), Permitted: capabilityBits(p.Capabilities.Permitted),
		NoNewPrivileges: *p.NoNewPrivileges, Filter: f.filter, FilterEarly: !f.custom, Cwd: p.Cwd, AppArmor: f.appArmor, Label: f.label,
		TimerSlack: timerslack.OfMain(),
	}
}

// wrapInit makes libcontainer execute the exec shim instead of the process's program, with the
// capabilities that this needs. It returns nil if libcontainer does everything.
func (f *confinement) wrapInit(p *libcontainer.Process) (*execshim.Init, error) {
	if f.program == nil {
		return nil, nil
	}
	init, err := f.program.PrepareInit(f.shimConfig(p), p.Args)
	if err != nil {
		return nil, err
	}
	p.Args = init.Args(p.Args)
	p.ExtraFiles = init.Files()
	// Ambient capabilities survive an execve of a process that is not root.
	caps := append(CapabilityNames(execshim.RequiredCapabilities), p.Capabilities.Permitted...)
	bounding := append(CapabilityNames(execshim.RequiredCapabilities), p.Capabilities.Bounding...)
	p.Capabilities = &configs.Capabilities{Bounding: bounding, Effective: caps, Permitted: caps, Inheritable: caps, Ambient: caps}
	return init, nil
}

// startWrapped calls start, by which libcontainer makes a process, with the result of wrapInit. A process without the
// exec shim gets its timer slack from the thread that makes it.
func startWrapped(init *execshim.Init, start func() error) error {
	if init == nil {
		return timerslack.WithMain(start)
	}
	return start()
}

// capabilityBit maps each capability's name, with CAP_, to the kernel's number.
var capabilityBit = sync.OnceValue(func() map[string]int {
	bits := map[string]int{}
	for _, c := range capability.ListKnown() {
		bits["CAP_"+strings.ToUpper(c.String())] = int(c)
	}
	return bits
})

// capabilityBits returns a set of capabilities as the kernel's bits. Like libcontainer it ignores unknown
// names.
func capabilityBits(names []string) (bits uint64) {
	for _, name := range names {
		if n, ok := capabilityBit()[name]; ok {
			bits |= 1 << n
		}
	}
	return bits
}

// CapabilityNames returns the names (CAP_...) of a set of capabilities, in no particular order.
func CapabilityNames(bits uint64) (names []string) {
	for name, n := range capabilityBit() {
		if bits>>n&1 != 0 {
			names = append(names, name)
		}
	}
	return names
}

// defaultProfiles caches the default seccomp profile by capability set. The profile depends on nothing else, and
// building it costs as much as the rest of a start.
var defaultProfiles sync.Map // string → *specs.LinuxSeccomp

// seccompFilter returns the seccomp filter of a container: none, the user's own profile, or the default.
func seccompFilter(c *pod.Container, s *specs.Spec) (*specs.LinuxSeccomp, error) {
	switch {
	case c.SeccompUnconfined:
		return nil, nil
	case c.Seccomp == nil:
		return defaultSeccomp(s)
	}
	p, err := seccompprofile.LoadProfile(string(c.Seccomp), s)
	if err != nil {
		return nil, fmt.Errorf("use the container's own seccomp profile: %w", err)
	}
	return p, nil
}

// defaultSeccomp returns the default profile of container runtimes (moby/profiles) for the capabilities of a
// process. It is for the machine's own architecture only: if libseccomp compiles the profile in every start, each
// further architecture costs 7 ms.
func defaultSeccomp(s *specs.Spec) (*specs.LinuxSeccomp, error) {
	key := strings.Join(s.Process.Capabilities.Bounding, ",")
	if p, ok := defaultProfiles.Load(key); ok {
		return p.(*specs.LinuxSeccomp), nil
	}
	p, err := seccompprofile.GetDefaultProfile(s)
	if err != nil {
		return nil, fmt.Errorf("make the default seccomp profile: %w", err)
	}
	p.Architectures = nil
	defaultProfiles.Store(key, p)
	return p, nil
}
