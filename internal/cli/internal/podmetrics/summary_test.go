package podmetrics

import "testing"

// TestNodeStats: the memory of the machine has the values that readers of /stats/summary expect of a kubelet.
func TestNodeStats(t *testing.T) {
	n, err := readNodeStats("attic", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]*int64{"available": n.Memory.AvailableBytes, "usage": n.Memory.UsageBytes, "working set": n.Memory.WorkingSetBytes, "RSS": n.Memory.RSSBytes} {
		if v == nil || *v <= 0 {
			t.Errorf("%s: %v", name, v)
		}
	}
}
