package runner

import (
	"fmt"
	"slices"

	"github.com/podrun/podrun/pod"
)

// withholding is a capability that a container does not get, whoever asks for it.
type withholding struct{ capability, why string }

// withholds lists what a container does not get here.
//
// CAP_SYS_PTRACE lets it seize libcontainer's init, which is in sight of who shares its PID
// namespace before it is confined. The init's memory belongs to the supervisor's user
// namespace, so that takes the capability in there.
//
// CAP_MKNOD opens every device of the host to who is root outside, unless a cgroup forbids it.
func (s *sandbox) withholds(c *pod.Container) (list []withholding) {
	root := mapsRoot()
	if root && c.Privileged {
		return nil
	}
	if s.user == "" {
		list = append(list, withholding{"CAP_SYS_PTRACE", "without a user namespace of its own it could take over podrun's processes; run podrun as an ordinary user"})
	}
	if root && s.cgroup == nil {
		list = append(list, withholding{"CAP_MKNOD", "no cgroup keeps it from the devices of the host; run podrun as an ordinary user, or where it can make cgroups"})
	}
	return slices.DeleteFunc(list, func(w withholding) bool { return !slices.Contains(c.Capabilities, w.capability) })
}

// withheld is a container as it is made and entered.
func (s *sandbox) withheld(c *pod.Container) *pod.Container {
	list := s.withholds(c)
	if len(list) == 0 {
		return c
	}
	less := *c
	less.Capabilities = slices.DeleteFunc(slices.Clone(c.Capabilities), func(name string) bool {
		return slices.ContainsFunc(list, func(w withholding) bool { return w.capability == name })
	})
	return &less
}

// checkCapabilities warns of what containers do not get.
func (s *sandbox) checkCapabilities() error {
	for _, containers := range [][]pod.Container{s.plan.InitContainers, s.plan.Containers} {
		for i := range containers {
			s.warnOfWithheld(&containers[i], s.addWarning)
		}
	}
	return nil
}

func (s *sandbox) warnOfWithheld(c *pod.Container, warn func(string)) {
	for _, w := range s.withholds(c) {
		warn(fmt.Sprintf("container %s does not get %s: %s", c.Name, w.capability, w.why))
	}
}
