package runner

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// A pod has an IPv4 and an IPv6 address, which it finds in its status, in /etc/hosts and
// on its device, and keeps them when its supervisor is killed.
func TestAddresses(t *testing.T) {
	testenv.NoLeaks(t)
	w := startWhole(t, newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")}))
	w.until(running)
	st, err := w.place.Status()
	if err != nil {
		t.Fatal(err)
	}
	if len(st.PodIPs) != 2 || len(st.Warnings) > 0 {
		t.Fatalf("addresses %v, warnings %v", st.PodIPs, st.Warnings)
	}
	for _, file := range []string{"/bin/cat /etc/hosts", "/bin/ip addr show dev eth0"} {
		_, out := w.ask("a", strings.Fields(file)...)
		for _, a := range st.PodIPs {
			if !strings.Contains(out, netip.MustParseAddr(a).String()) {
				t.Errorf("%s lacks %s:\n%s", file, a, out)
			}
		}
	}
}
