package node

import (
	"testing"

	"github.com/podrun/podrun/internal/node/controlplane"
	"github.com/podrun/podrun/netns/nodes"
)

// The nodes of a cluster have the addresses that its manifest and its certificates name.
func TestNodeAddresses(t *testing.T) {
	if controlplane.MaxNodes > nodes.Last {
		t.Errorf("a cluster may have %d nodes, and the last one is %d", controlplane.MaxNodes, nodes.Last)
	}
	for number := 1; number <= controlplane.MaxNodes; number++ {
		if got, want := nodes.Address(number).String(), (controlplane.Cluster{}).Address(number); got != want {
			t.Errorf("node %d has the address %s, and the manifest names %s", number, got, want)
		}
	}
}
