package netpolicy

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/netns/ipam"
	"github.com/podrun/podrun/netns/router"
)

// A host may have more isolated pods, with more peers, than fit in a socket's default buffers.
func TestManyPods(t *testing.T) {
	w := newTestbed(t, "a", "b", "c")
	w.serve("b", 80)
	for i := range 300 {
		s := ipam.Slot(100 + i)
		a := w.Pool.Addresses(s)
		w.catalog.Pods = append(w.catalog.Pods, Pod{
			Namespace: "default", Name: fmt.Sprint("pod", i), Labels: labels("set", "many", "number", fmt.Sprint(i)),
			Addresses: []netip.Addr{a.V4, a.V6}, Device: router.DeviceIndex(s), Node: []netip.Addr{w.Pool.Gateway().V4, w.Pool.Gateway().V6},
		})
	}
	everybody := Policy{Namespace: "default", Pods: &pod.Selector{}, IsolatesIngress: true, Ingress: []Rule{{[]Peer{{Pods: byLabel("set", "many")}, peer("a")}, []Port{tcp(80), tcp(443)}}}}
	w.catalog.Policies = []Policy{everybody}
	all := w.catalog.Isolate()
	if len(all) != 303 {
		t.Fatalf("%d pods are isolated", len(all))
	}
	if _, err := Apply(w.RouterNS, all, 0, nil); err != nil {
		t.Fatal(err)
	}
	w.check(true, "a b")
	w.check(false, "c b")
}
