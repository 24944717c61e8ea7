package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/testenv"
)

// The directory that the node has made for a claim of its cluster belongs to the pod's fsGroup, as the directory of a
// claim does. A volume that somebody else has made keeps its owner.
func TestProvisionedVolume(t *testing.T) {
	for _, made := range []bool{true, false} {
		t.Run(fmt.Sprint(made), func(t *testing.T) {
			testenv.NoLeaks(t)
			c := shell(layer(t), "a", "stat -c '%u:%g %a' /v; echo kept >/v/file; cat /v/file")
			c.User, c.SupplementalGroups = "1000", []uint32{2000}
			c.Mounts = []pod.Mount{{Volume: "data", Path: "/v"}}
			plan := newPlan(nil, []pod.Container{c})
			plan.FSGroup = &pod.Group{ID: 2000}
			plan.Cluster = &pod.Cluster{Domain: pod.DefaultClusterDomain}
			plan.Volumes = []pod.Volume{{Name: "data", Kind: pod.ClaimVolume, Claim: "data"}}
			p := prepare(t, plan)
			p.place = p.place.OfCluster()
			dir, err := p.dirs().MakeProvisioned("pvc-1_default_data")
			if err != nil {
				t.Fatal(err)
			}
			want := "0:2000 2777"
			if !made {
				dir = filepath.Join(dir, "disk")
				if err := errors.Join(os.Mkdir(dir, 0o777), os.Chmod(dir, 0o777)); err != nil {
					t.Fatal(err)
				}
				want = "0:0 777"
			}
			for _, o := range []*pod.Object{
				{Kind: pod.KindClaim, Namespace: "default", Name: "data", UID: "u", Claim: &pod.Claim{VolumeName: "pvc-1"}},
				{Kind: pod.KindVolume, Name: "pvc-1", UID: "v", PersistentVolume: &pod.PersistentVolume{Source: "local", Path: dir, PathType: "Directory", Claim: &pod.ClaimRef{Namespace: "default", Name: "data", UID: "u"}}},
			} {
				if err := p.dirs().OfCluster().PutObject(o); err != nil {
					t.Fatal(err)
				}
			}
			p.begin()
			if st := p.ended(); st.Phase != pod.Succeeded {
				t.Fatalf("the pod has %s: %+v", st.Phase, st)
			}
			if got := strings.TrimSpace(p.log("a")); got != want+"\nkept" {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// A pod that collects logs reads the logs of the cluster's pods under the kubelet's names, also after a rotation, and
// changes nothing there.
func TestClusterLogs(t *testing.T) {
	testenv.NoLeaks(t)
	const script = `i=0; while test $i -lt 300; do echo line $i of a log that is rotated; i=$((i+1)); done
until grep -q 'stdout F line 299 ' /var/log/containers/p_default_a-*.log 2>/dev/null; do usleep 10000; done
ls /var/log/pods/*/a; touch /var/log/pods/x /var/log/pods/*/a/0.log 2>/dev/null || echo unchanged`
	c := shell(layer(t), "a", script)
	c.Mounts = []pod.Mount{{Volume: "logs", Path: "/var/log", ReadOnly: true}}
	plan := newPlan(nil, []pod.Container{c})
	plan.Cluster = &pod.Cluster{Domain: pod.DefaultClusterDomain}
	plan.LogMaxBytes, plan.LogMaxFiles = 4096, 3
	p := prepare(t, plan)
	p.place = p.place.OfCluster()
	if err := p.dirs().MakeClusterLogDir(); err != nil {
		t.Fatal(err)
	}
	plan.Volumes = []pod.Volume{{Name: "logs", Kind: pod.HostPath, Path: p.dirs().ClusterLogDir(), PathType: "Directory"}}
	p.begin()
	p.running()
	if err := p.place.LinkLogs(); err != nil {
		t.Fatal(err)
	}
	if st := p.ended(); st.Phase != pod.Succeeded {
		t.Fatalf("the pod has %s: %+v", st.Phase, st)
	}
	if out := p.log("a"); !strings.Contains(out, "0.log\n0.log.") || !strings.HasSuffix(out, "unchanged\n") {
		t.Errorf("%q", out)
	}
}
