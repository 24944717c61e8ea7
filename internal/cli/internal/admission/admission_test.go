package admission

import (
	"errors"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
)

// TestHugePageVolumesNeedRoot checks that only root can mount the file system of huge pages.
func TestHugePageVolumesNeedRoot(t *testing.T) {
	plan := &pod.Plan{Name: "web", Resources: pod.Resources{HugePages: map[string]int64{"2MB": 2 << 20}},
		Volumes: []pod.Volume{{Name: "v", Kind: pod.EmptyDirHugePages, PageSize: 2 << 20}}}
	if err := refuseHugeVolumes(plan, 0); err != nil {
		t.Error(err)
	}
	err := refuseHugePages(plan, func(map[string]int64) error { return nil }) // these tests run as an ordinary user
	if err == nil || err.Error() != "volume v of pod web has huge pages: only root can mount hugetlbfs" || !strings.Contains(report.Hint(err), "MFD_HUGETLB") {
		t.Errorf("%v, hint %q", err, report.Hint(err))
	}
	none := errors.New("there are none")
	if err := refuseHugePages(plan, func(map[string]int64) error { return none }); !errors.Is(err, none) {
		t.Error(err)
	}
}

// TestAppArmorOfTheHost checks that AppArmor options which the host does not support are errors, and that the
// default profile is one that a container runtime has loaded.
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
		err := applyAppArmor(plan, c.has)
		if c.wrong == "" && (err != nil || plan.Containers[0].AppArmor != c.gets) {
			t.Errorf("%+v: %v, %q", c, err, plan.Containers[0].AppArmor)
		}
		if c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong) || !strings.Contains(err.Error(), "container app of pod web")) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestMasqueradeNeedsRoot checks that options that need root are errors before anything is created.
func TestMasqueradeNeedsRoot(t *testing.T) {
	plan := &pod.Plan{Name: "web", Network: pod.NetworkMasquerade}
	if err := refuseMasquerade(plan, 0); err != nil {
		t.Error(err)
	}
	err := refuseMasquerade(plan, 1000)
	if err == nil || !strings.Contains(err.Error(), "pod web requests the network masquerade: only root") || !strings.Contains(report.Hint(err), "tproxy") {
		t.Errorf("%v, hint %q", err, report.Hint(err))
	}
	plan.Network = pod.NetworkAuto
	if err := refuseMasquerade(plan, 1000); err != nil {
		t.Error(err)
	}
}
