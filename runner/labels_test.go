package runner

import (
	"testing"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"

	"github.com/podrun/podrun/internal/stage/trampoline"
	"github.com/podrun/podrun/pod"
)

// A container's processes have its SELinux label, the first and those of exec, probes and
// hooks: the trampoline asks for it, or libcontainer where there is none.
func TestLabelsOfProcesses(t *testing.T) {
	c := &pod.Container{Name: "app", Label: "system_u:system_r:container_t:s0:c1,c2", FileLabel: "system_u:object_r:container_file_t:s0:c1,c2"}
	spec := runtimeSpec(&pod.Plan{}, c, place{}, identity{})
	if spec.Process.SelinuxLabel != c.Label || spec.Linux.MountLabel != c.FileLabel {
		t.Errorf("%q, %q", spec.Process.SelinuxLabel, spec.Linux.MountLabel)
	}
	no := false
	p := &libcontainer.Process{Capabilities: &configs.Capabilities{}, NoNewPrivileges: &no}
	if config := (&configs.Config{ProcessLabel: c.Label, NoNewKeyring: true, Cgroups: &cgroups.Cgroup{}}); joinable(config, p) {
		t.Error("the trampoline makes processes whose label only libcontainer knows")
	}
	config := &configs.Config{ProcessLabel: c.Label}
	f, err := (&sandbox{trampoline: &trampoline.Program{}}).confine(c, config)
	if err != nil || f.order(p).Label != c.Label || config.ProcessLabel != "" {
		t.Errorf("%v, %q, %q", err, f.order(p).Label, config.ProcessLabel)
	}
	config.ProcessLabel = c.Label
	f, err = (&sandbox{}).confine(c, config)
	if err != nil || f.by != nil || config.ProcessLabel != c.Label {
		t.Errorf("%v, %q", err, config.ProcessLabel)
	}
}
