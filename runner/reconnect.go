package runner

import (
	"errors"
	"io/fs"
	"os"

	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/netns/ipam"
	"github.com/podrun/podrun/netns/router"
	"github.com/podrun/podrun/pod"
)

// reconnect is connect for what another supervisor has made: the pod's place is on record,
// the keeper has the wires.
func (n *network) reconnect(take func(name string) (*os.File, bool)) error {
	had, wires, err := n.regain(take)
	switch {
	case store.IsExhausted(err):
		return errors.Join(err, wires.Close()) // the next supervisor may see
	case len(wires) > 0 && err != nil && !errors.Is(err, fs.ErrNotExist):
		n.warn("the pod has no network any more but its own loopback: " + err.Error())
	}
	if err != nil || len(wires) == 0 {
		return wires.Close() // it has none
	}
	if n.pool, err = router.Open(n.router()).CurrentPool(); err != nil {
		return errors.Join(err, wires.Close())
	}
	n.lives(had)
	if n.leaves {
		go n.mendWayOut()
	}
	n.crier.told, _ = n.store.Endpoint() // else it is told again
	return n.carry(wires)
}

// reconnectToRemove is reconnect for a sandbox that is being removed: some of its wires may
// have gone already, and nobody is left who sends.
func (n *network) reconnectToRemove(take func(name string) (*os.File, bool)) error {
	had, wires, err := n.regain(take)
	if err == nil && len(wires) > 0 {
		n.pool = ipam.Pool(pod.NetworksOf(had.Addresses))
		n.lives(had)
	}
	return wires.Close()
}

// regain takes the wires that the keeper has, and reads the pod's place, if it has one.
func (n *network) regain(take func(name string) (*os.File, bool)) (store.Lease, router.TrafficFDs, error) {
	wires := router.TrafficFDs{}
	for _, name := range router.TrafficNames {
		if f, ok := take(wirePrefix + name); ok {
			wires[name] = f
		}
	}
	had, err := n.store.Lease()
	return had, wires, err
}

// lives takes the pod's place in the network as it is on record.
func (n *network) lives(had store.Lease) {
	n.slot, n.leaves, n.stays = ipam.Slot(had.Slot), had.Masqueraded, had.NoMasqueradeReason
}
