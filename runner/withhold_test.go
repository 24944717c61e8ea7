package runner

import (
	"slices"
	"strings"
	"testing"

	limit "github.com/opencontainers/cgroups"
	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"

	"github.com/podrun/podrun/cgroups"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// asRoot has the supervisor take itself for root of the machine, or not, until the test ends.
func asRoot(t *testing.T, root bool) {
	before := mapsRoot
	mapsRoot = func() bool { return root }
	t.Cleanup(func() { mapsRoot = before })
}

// What a container does not get depends on its user namespace and cgroup alone; root's
// privileged containers are root.
func TestWithheldCapabilities(t *testing.T) {
	for name, test := range map[string]struct {
		root, privileged, cgroup bool
		user, want               string
	}{
		"of all pods":                 {want: "CAP_CHOWN CAP_MKNOD"}, // which opens nothing in a user namespace
		"of all pods, privileged":     {privileged: true, want: "CAP_CHOWN CAP_MKNOD"},
		"of its own":                  {user: "/ns", want: "CAP_CHOWN CAP_MKNOD CAP_SYS_PTRACE"},
		"root":                        {root: true, want: "CAP_CHOWN"},
		"root, with a devices cgroup": {root: true, cgroup: true, want: "CAP_CHOWN CAP_MKNOD"},
		"root, privileged":            {root: true, privileged: true, want: "CAP_CHOWN CAP_MKNOD CAP_SYS_PTRACE"},
	} {
		t.Run(name, func(t *testing.T) {
			asRoot(t, test.root)
			all := pod.Container{Name: "c", Privileged: test.privileged, Capabilities: []string{"CAP_CHOWN", "CAP_MKNOD", "CAP_SYS_PTRACE"}}
			s := &sandbox{plan: newPlan(nil, []pod.Container{all}), shared: shared{user: test.user}}
			if test.cgroup {
				s.cgroup = &cgroups.Pod{}
			}
			if got := strings.Join(s.withheld(&all).Capabilities, " "); got != test.want {
				t.Errorf("it gets %s, want %s", got, test.want)
			}
			if err := s.checkCapabilities(); err != nil || len(s.warned()) != 3-len(strings.Fields(test.want)) {
				t.Errorf("%v, warnings %q", err, s.warned())
			}
			if len(all.Capabilities) != 3 {
				t.Error("the plan has changed")
			}
		})
	}
}

// Where libcontainer makes cgroups of itself, as root on a host without the one hierarchy, each
// container of each pod has its own, and commands are begun by libcontainer, which puts them there.
func TestRootsContainersShareNoCgroup(t *testing.T) {
	asRoot(t, true)
	seen := map[string]bool{}
	var config *configs.Config
	for _, uid := range []string{"one", "other"} {
		plan := newPlan(nil, []pod.Container{{Name: "same"}})
		plan.UID = uid
		s := &sandbox{plan: plan}
		config = &configs.Config{Cgroups: &limit.Cgroup{Name: "same-0"}, NoNewKeyring: true}
		newContainer(s, &plan.Containers[0], 0).harden(s, config)
		if name := config.Cgroups.Name; seen[name] || name == "" {
			t.Errorf("two pods' containers have the cgroup %q", name)
		}
		seen[config.Cgroups.Name] = true
	}
	p := &libcontainer.Process{Capabilities: &configs.Capabilities{}}
	if joinable(config, p) {
		t.Error("a command is begun outside of the container's cgroups")
	}
	asRoot(t, false)
	if !joinable(config, p) {
		t.Error("an ordinary user's, which has none, is begun by libcontainer")
	}
}

// The pod warns of what an ephemeral container does not get.
func TestAnEphemeralContainerIsWarnedOf(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	late := shell(l, "late", "exec sleep 1000")
	late.Capabilities = append([]string{"CAP_SYS_PTRACE"}, testCaps...)
	plan := newPlan(nil, []pod.Container{shell(l, "a", "exec sleep 1000")})
	plan.Ephemeral = []pod.Container{late}
	p := start(t, plan)
	p.until("started", func(st pod.Status) bool {
		return len(st.Ephemeral) == 1 && st.Ephemeral[0].State.Running != nil
	})
	if warnings := p.engine.annotate(pod.Status{}).Warnings; !slices.ContainsFunc(warnings, func(text string) bool {
		return strings.HasPrefix(text, "container late does not get CAP_SYS_PTRACE: ")
	}) {
		t.Errorf("warnings %q", warnings)
	}
}
