package runner

import (
	"fmt"
	"strings"
	"sync"

	profile "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podrun/podrun/pod"
)

// profiles keeps the default seccomp profile by capability set: it depends on
// nothing else, and building it costs as much as the rest of a start.
var profiles sync.Map // string → *specs.LinuxSeccomp

// seccompFilter is the filter of a container: none, the user's own profile, or the default.
func seccompFilter(c *pod.Container, s *specs.Spec) (*specs.LinuxSeccomp, error) {
	switch {
	case c.SeccompUnconfined:
		return nil, nil
	case c.Seccomp == nil:
		return defaultSeccomp(s)
	}
	p, err := profile.LoadProfile(string(c.Seccomp), s)
	if err != nil {
		return nil, fmt.Errorf("use the container's own seccomp profile: %w", err)
	}
	return p, nil
}

// defaultSeccomp is the runtime's default profile (moby/profiles) for a process
// with these capabilities, for the machine's own architecture only: libseccomp
// compiles it in every start, and each further architecture costs it 7 ms.
func defaultSeccomp(s *specs.Spec) (*specs.LinuxSeccomp, error) {
	key := strings.Join(s.Process.Capabilities.Bounding, ",")
	if p, ok := profiles.Load(key); ok {
		return p.(*specs.LinuxSeccomp), nil
	}
	p, err := profile.GetDefaultProfile(s)
	if err != nil {
		return nil, fmt.Errorf("make the default seccomp profile: %w", err)
	}
	p.Architectures = nil
	profiles.Store(key, p)
	return p, nil
}
