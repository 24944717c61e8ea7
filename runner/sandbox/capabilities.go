package sandbox

import (
	"fmt"
	"slices"

	"github.com/podrun/podrun/internal/pod"
)

// deniedCapability is a capability that a container requests and does not get, and the reason.
type deniedCapability struct{ capability, why string }

// deniedCapabilities returns the capabilities that c requests and does not get.
//
// CAP_SYS_PTRACE: with it the container could trace libcontainer's init, which is visible in a shared PID
// namespace before it is confined. Tracing requires the capability in the supervisor's user namespace, to which
// the init's memory belongs: a pod with a user namespace of its own may have it.
//
// CAP_MKNOD: it opens every device of the host to a process that is root outside the user namespace, unless a
// cgroup forbids that.
func (s *Sandbox) deniedCapabilities(c *pod.Container) (list []deniedCapability) {
	root := RootIsHostRoot()
	if root && c.Privileged {
		return nil
	}
	if s.User == "" {
		list = append(list, deniedCapability{"CAP_SYS_PTRACE", "without a user namespace of its own it could take over podrun's processes; run podrun as an ordinary user"})
	}
	if root && s.Cgroup == nil {
		list = append(list, deniedCapability{"CAP_MKNOD", "no cgroup restricts its access to the devices of the host; run podrun as an ordinary user, or where it can make cgroups"})
	}
	return slices.DeleteFunc(list, func(w deniedCapability) bool { return !slices.Contains(c.Capabilities, w.capability) })
}

// WithoutDenied returns the container without its denied capabilities. The container is made from the result,
// and commands in it get no more capabilities either.
func (s *Sandbox) WithoutDenied(c *pod.Container) *pod.Container {
	list := s.deniedCapabilities(c)
	if len(list) == 0 {
		return c
	}
	less := *c
	less.Capabilities = slices.DeleteFunc(slices.Clone(c.Capabilities), func(name string) bool {
		return slices.ContainsFunc(list, func(w deniedCapability) bool { return w.capability == name })
	})
	return &less
}

// warnCapabilities adds warnings for capabilities that containers do not get.
func (s *Sandbox) warnCapabilities() {
	for _, containers := range [][]pod.Container{s.Plan.InitContainers, s.Plan.Containers} {
		for i := range containers {
			s.WarnDenied(&containers[i], s.addWarning)
		}
	}
}

// WarnDenied calls warn for each capability that a container requests and does not get.
func (s *Sandbox) WarnDenied(c *pod.Container, warn func(string)) {
	for _, w := range s.deniedCapabilities(c) {
		warn(fmt.Sprintf("container %s does not get %s: %s", c.Name, w.capability, w.why))
	}
}
