package build_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/pod"
)

// TestOptions: annotations reach the plan, of one container or of all.
func TestOptions(t *testing.T) {
	plan := mustBuild(t, `
apiVersion: v1
kind: Pod
metadata:
  name: p
  annotations:
    podrun.dev/ulimits: nofile=1:2
    ulimits.podrun.dev/c: memlock=-1
    podrun.dev/user: www-data:video
    podrun.dev/groups: audio,44
    podrun.dev/max-restarts: "3"
    podrun.dev/host-loopback: "true"
    podrun.dev/host-names: gw, host.docker.internal
    podrun.dev/dns-servers: 192.0.2.1
spec:
  containers:
  - {name: c, image: x}
`, pod.Image{Cmd: []string{"run"}, User: "nobody"})
	c := plan.Containers[0]
	got := []any{c.Ulimits, c.User, c.Groups, c.MaxRestarts, plan.HostNames, plan.DNSServers}
	want := []any{
		[]pod.Ulimit{{Name: "memlock", Soft: math.MaxUint64, Hard: math.MaxUint64}}, "www-data:video", []string{"audio", "44"}, 3,
		[]string{"gw", "host.docker.internal"}, []string{"192.0.2.1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
