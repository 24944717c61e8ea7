package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/pod"
)

// What a host cannot do about AppArmor is said before anything is made; the default profile
// is one that some runtime has loaded.
func TestAppArmorOfTheHost(t *testing.T) {
	loaded := func(names ...string) host.AppArmor {
		return host.AppArmor{Enabled: true, Try: func(profile string) error {
			for _, n := range names {
				if n == profile {
					return nil
				}
			}
			return errors.New("it is not loaded")
		}}
	}
	for _, c := range []struct {
		wants string
		has   host.AppArmor
		gets  string
		wrong string
	}{
		{"", host.AppArmor{}, "", ""},
		{"tight", host.AppArmor{}, "", "AppArmor is not enabled on the host"},
		{pod.AppArmorDefault, host.AppArmor{}, "", "AppArmor is not enabled on the host"},
		{"tight", loaded("tight"), "tight", ""},
		{"tight", loaded("loose"), "", "tight: it is not loaded"},
		{pod.AppArmorDefault, loaded("docker-default", "cri-containerd.apparmor.d"), "cri-containerd.apparmor.d", ""},
		{pod.AppArmorDefault, loaded("docker-default", "podrun-default"), "podrun-default", ""},
		{pod.AppArmorDefault, loaded(), "", "only root can load one"},
	} {
		plan := &pod.Plan{Name: "web", Containers: []pod.Container{{Name: "app", AppArmor: c.wants}}}
		err := confineByAppArmor(plan, c.has)
		if c.wrong == "" && (err != nil || plan.Containers[0].AppArmor != c.gets) {
			t.Errorf("%+v: %v, %q", c, err, plan.Containers[0].AppArmor)
		}
		if c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong) || !strings.Contains(err.Error(), "container app of pod web")) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A pod in the host's PID namespace takes a cgroup; nothing else does.
func TestHostPIDTakesACgroup(t *testing.T) {
	w := newWorld(t)
	w.findings = []host.Finding{{Name: host.Limits, Level: host.Warning, Detail: "nothing is delegated", Cure: "delegate it"}}
	shared := strings.Replace(oneContainer, "spec:", "spec:\n  hostPID: true", 1)
	got := w.begin(shared, "up", "-d", "-").wait()
	want := "podrun: pod web: hostPID takes a cgroup of the pod's own, by which all of its processes are ended: nothing is delegated\nhint: delegate it\n"
	if got.code != 125 || got.err != want {
		t.Errorf("exit code %d, stderr %q, want %q", got.code, got.err, want)
	}
	if w.dirs.Pod("default", "web").Exists() {
		t.Error("the pod was made")
	}
}

// A process that waits to become a pod's is no stranger in a cgroup that is looked at for hostPID.
func TestHostPIDIsAloneInItsCgroup(t *testing.T) {
	w := newWorld(t)
	f := &front{getenv: func(string) string { return "" }, rooms: w, foresight: &foresight{}}
	if err := f.refuseHostPID(&pod.Plan{Name: "web", HostPID: true}); err != nil || !f.foresight.over {
		t.Errorf("%v, nothing is begun any more: %v", err, f.foresight.over)
	}
}
