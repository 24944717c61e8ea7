package network

import (
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns/ipam"
)

// The view stays the same until something changes, and a process without free descriptors keeps it.
func TestViewIsKept(t *testing.T) {
	dirs := store.Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
	tell := func(name string) (store.Pod, *os.File) {
		p := dirs.Pod("ns", name)
		lock, err := p.Lock()
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Create(&pod.Plan{Name: name}, nil); err != nil {
			t.Fatal(err)
		}
		if err := p.WriteEndpoint(&pod.Endpoint{UID: name, Addresses: []string{"10.88.0.2"}}); err != nil {
			t.Fatal(err)
		}
		return p, lock
	}
	a, alive := tell("a")
	defer alive.Close()
	b, dies := tell("b")
	o := &pod.Object{Kind: pod.KindService, Namespace: "ns", Name: "web", Service: &pod.Service{ClusterIPs: []string{"10.88.128.1", "fd88::8001"}}}
	if err := dirs.PutObject(o); err != nil {
		t.Fatal(err)
	}
	pool := ipam.Pool{V4: netip.MustParsePrefix("10.88.0.0/16"), V6: netip.MustParsePrefix("fd88::/64")}
	s := &Network{store: a, plan: &pod.Plan{}, Pool: pool, Slot: 1}
	first := s.view()
	if len(first.Pods) != 2 || len(first.Services) != 1 {
		t.Fatalf("%+v", first)
	}
	again := func() bool {
		s.services.readAt = time.Time{}
		return s.view() == first
	}
	if err := b.WriteEndpoint(&pod.Endpoint{UID: "b", Addresses: []string{"10.88.0.2"}}); err != nil {
		t.Fatal(err)
	}
	if !again() {
		t.Error("it is made again of what is the same")
	}
	testenv.WithDescriptors(t, 0, func() {
		if !again() {
			t.Error("it is forgotten")
		}
	})
	dies.Close()
	if again() || len(s.view().Pods) != 1 {
		t.Errorf("a pod that has ended: %+v", s.view())
	}
}
