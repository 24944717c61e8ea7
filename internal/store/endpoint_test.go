package store

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
)

// present returns a pod that is alive (its lock is held) and has published an endpoint.
func present(t *testing.T, d Dirs, name string) (Pod, *os.File) {
	t.Helper()
	p := d.Pod("ns", name)
	lock, err := p.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Create(&pod.Plan{Name: name}, nil); err != nil {
		t.Fatal(err)
	}
	if err := p.WriteEndpoint(&pod.Endpoint{UID: name}); err != nil {
		t.Fatal(err)
	}
	return p, lock
}

// withoutDescriptors calls f while no descriptor is left.
func withoutDescriptors(t *testing.T, f func()) {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	f()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
}

func TestPeers(t *testing.T) {
	d := Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
	a, la := present(t, d, "a")
	defer la.Close()
	_, lb := present(t, d, "b")
	c, lc := present(t, d, "c")
	defer lc.Close()
	names := func() (list []string) {
		all, err := a.Peers()
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range all {
			list = append(list, n.Namespace+"/"+n.Name+" "+n.UID)
		}
		return list
	}
	if diff := cmp.Diff([]string{"ns/a a", "ns/b b", "ns/c c"}, names()); diff != "" {
		t.Error(diff)
	}
	lb.Close() // it has died: its endpoint does not count
	if err := os.WriteFile(c.endpointFile(), []byte("{rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ns/a a"}, names()); diff != "" {
		t.Error(diff)
	}
	if got, err := a.Endpoint(); err != nil || got.UID != "a" {
		t.Errorf("%+v, %v", got, err)
	}
	for range 2 { // it may have gone already
		if err := a.RemoveEndpoint(); err != nil {
			t.Error(err)
		}
	}
	if got := names(); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

// Without a free descriptor Peers fails instead of taking a pod for dead.
func TestUnreadablePeer(t *testing.T) {
	p, lock := present(t, Dirs{Data: t.TempDir(), Runtime: t.TempDir()}, "a")
	defer lock.Close()
	var reported, alive bool
	var err, aerr error
	withoutDescriptors(t, func() {
		_, reported, err = p.peer()
		alive, aerr = p.alive()
	})
	if reported || !IsExhausted(err) || alive || !IsExhausted(aerr) {
		t.Errorf("endpoint %v, %v; alive %v, %v", reported, err, alive, aerr)
	}
	if n, reported, err := p.peer(); !reported || err != nil || n.UID != "a" {
		t.Errorf("later: %+v, %v, %v", n, reported, err)
	}
}

func TestEndpointVersion(t *testing.T) {
	d := Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
	p := d.Pod("ns", "a")
	lock, err := p.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	last := p.EndpointVersion()
	o := &pod.Object{Kind: pod.KindService, Namespace: "ns", Name: "s"}
	for _, c := range []struct {
		name    string
		f       func() error
		changes bool
	}{
		{"a pod publishes", func() error { return p.WriteEndpoint(&pod.Endpoint{UID: "1"}) }, true},
		{"it publishes again", func() error { return p.WriteEndpoint(&pod.Endpoint{UID: "2"}) }, true},
		{"a Service is made", func() error { return d.PutObject(o) }, true},
		{"a ConfigMap is made", func() error {
			return d.PutObject(&pod.Object{Kind: pod.KindConfigMap, Namespace: "ns", Name: "c"})
		}, false},
		{"a Service is deleted", func() error { return d.DeleteObject(o.Kind, o.Namespace, o.Name) }, true},
		{"the pod has gone", p.RemoveEndpoint, true},
	} {
		if err := c.f(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		now := p.EndpointVersion()
		if (now != last) != c.changes {
			t.Errorf("%s: the stamp changes: %v", c.name, now != last)
		}
		last = now
	}
}

func TestNetworks(t *testing.T) {
	d := Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
	if n := d.Networks(nil); n != pod.DefaultNetworks {
		t.Errorf("nothing there: %v", n)
	}
	s := &pod.Object{Service: &pod.Service{ClusterIPs: []string{"172.22.128.5", "fd89::8005"}}}
	cluster := &pod.Object{Owner: &pod.Owner{Kind: pod.KindNode}, Service: &pod.Service{ClusterIPs: []string{"10.96.0.1", "fd00:96::1"}}}
	if n := d.Networks([]*pod.Object{cluster, {Service: &pod.Service{ClusterIPs: []string{"None"}}}, s}); n.V4.String() != "172.22.0.0/16" || n.V6.String() != "fd89::/64" {
		t.Errorf("as Services have: %v", n)
	}
}
