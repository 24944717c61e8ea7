package container

import (
	"testing"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runc/libcontainer/specconv"
	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podrun/podrun/internal/execshim"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/runner/sandbox"
)

// All processes of a container have its SELinux label: the first one and the processes of exec, probes and hooks.
// The exec shim sets it, or libcontainer where there is no exec shim.
func TestLabelsOfProcesses(t *testing.T) {
	c := &pod.Container{Name: "app", Label: "system_u:system_r:container_t:s0:c1,c2", FileLabel: "system_u:object_r:container_file_t:s0:c1,c2"}
	spec := runtimeSpec(&pod.Plan{}, c, specInput{}, Identity{})
	if spec.Process.SelinuxLabel != c.Label || spec.Linux.MountLabel != c.FileLabel {
		t.Errorf("%q, %q", spec.Process.SelinuxLabel, spec.Linux.MountLabel)
	}
	no := false
	p := &libcontainer.Process{Capabilities: &configs.Capabilities{}, NoNewPrivileges: &no}
	if config := (&configs.Config{ProcessLabel: c.Label, NoNewKeyring: true, Cgroups: &cgroups.Cgroup{}}); shimCanExec(config, p) {
		t.Error("the exec shim makes processes whose label only libcontainer knows")
	}
	config := &configs.Config{ProcessLabel: c.Label}
	f, err := newConfinement(&sandbox.Sandbox{Shim: &execshim.Program{}}, c, config)
	if err != nil || f.shimConfig(p).Label != c.Label || config.ProcessLabel != "" {
		t.Errorf("%v, %q, %q", err, f.shimConfig(p).Label, config.ProcessLabel)
	}
	config.ProcessLabel = c.Label
	f, err = newConfinement(&sandbox.Sandbox{}, c, config)
	if err != nil || f.program != nil || config.ProcessLabel != c.Label {
		t.Errorf("%v, %q", err, config.ProcessLabel)
	}
}

// libcontainer confines the processes of a container that can mount over its /proc, also if the exec shim could.
func TestConfinementOfAContainerThatCanMount(t *testing.T) {
	c := &pod.Container{Capabilities: []string{"CAP_CHOWN", "CAP_SYS_ADMIN"}, AppArmor: "tight"}
	config := &configs.Config{Seccomp: &configs.Seccomp{}, AppArmorProfile: c.AppArmor}
	f, err := newConfinement(&sandbox.Sandbox{Shim: &execshim.Program{}}, c, config)
	if err != nil || f.program != nil || config.Seccomp == nil || config.AppArmorProfile != c.AppArmor {
		t.Errorf("%v, %+v", err, config)
	}
}

// Containers of a pod with the same capabilities share one filter, unless they have profiles of their own.
func TestContainersShareTheDefaultFilter(t *testing.T) {
	dir := t.TempDir()
	s := &sandbox.Sandbox{Shim: &execshim.Program{}, Pod: store.Dirs{Data: dir + "/data", Runtime: dir + "/run"}.Pod("default", "p")}
	confined := func(caps []string, own string) confinement {
		c := &pod.Container{Capabilities: caps, Seccomp: []byte(own)}
		if own == "" {
			c.Seccomp = nil
		}
		profile, err := seccompFilter(c, &specs.Spec{Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{Bounding: caps}}, Linux: &specs.Linux{}})
		if err != nil {
			t.Fatal(err)
		}
		config := &configs.Config{}
		if config.Seccomp, err = specconv.SetupSeccomp(profile); err != nil {
			t.Fatal(err)
		}
		f, err := newConfinement(s, c, config)
		if err != nil || config.Seccomp != nil || len(f.filter.Program) == 0 || f.filterKey == "" {
			t.Fatalf("%v, %v, %d bytes, key %q", err, config.Seccomp, len(f.filter.Program), f.filterKey)
		}
		return f
	}
	same := func(a, b confinement) bool {
		return &a.filter.Program[0] == &b.filter.Program[0] && a.filterKey == b.filterKey
	}
	first := confined([]string{"CAP_KILL"}, "")
	if again := confined([]string{"CAP_KILL"}, ""); !same(first, again) {
		t.Error("a second container has a filter of its own")
	}
	if other := confined([]string{"CAP_KILL", "CAP_SYS_TIME"}, ""); same(first, other) {
		t.Error("a container with other capabilities has the first one's filter")
	}
	if own := confined([]string{"CAP_KILL"}, `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["mkdir"],"action":"SCMP_ACT_ERRNO"}]}`); same(first, own) || !own.custom {
		t.Error("a container with a profile of its own has the default one's filter")
	}
}
