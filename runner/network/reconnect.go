package network

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/netns/ipam"
	"github.com/podrun/podrun/netns/router"
)

// Reconnect takes over the network that another supervisor has made. It reads the recorded lease, and takes the
// traffic descriptors from pod init.
func (n *Network) Reconnect(take func(name string) (*os.File, bool)) error {
	had, fds, err := n.loadLease(take)
	switch {
	case store.IsExhausted(err):
		return errors.Join(err, fds.Close()) // the next supervisor may succeed
	case len(fds) > 0 && err != nil && !errors.Is(err, fs.ErrNotExist):
		n.Warn("the pod now has only a loopback network: " + err.Error())
	}
	if err != nil || len(fds) == 0 {
		return fds.Close() // the pod has no lease
	}
	pool, err := router.Open(n.router()).CurrentPool()
	if err == nil {
		err = n.setPool(pool, had)
	}
	if err != nil {
		return errors.Join(err, fds.Close())
	}
	n.applyLease(had)
	if n.Masquerades {
		go n.repairMasquerade()
	}
	n.publisher.published, _ = n.store.Endpoint() // on an error it is published again
	if err := n.serveTraffic(fds); err != nil {
		return err
	}
	if err := n.UpdatePolicies(); err != nil { // the previous supervisor may have been killed before
		n.WarnOfPolicies(err)
	}
	return nil
}

// ReconnectForRemoval is Reconnect for a sandbox that is being removed. Some of its traffic descriptors may be
// gone already, and none of its processes sends any more.
func (n *Network) ReconnectForRemoval(take func(name string) (*os.File, bool)) error {
	had, fds, err := n.loadLease(take)
	if err == nil && len(fds) > 0 {
		networks := had.Networks()
		if err := n.setPool(ipam.Pool{V4: networks.V4, V6: networks.V6}, had); err != nil {
			fmt.Fprintln(os.Stderr, err) // only the addresses in the last status differ
		}
		n.applyLease(had)
	}
	return fds.Close()
}

// loadLease takes the traffic descriptors from pod init, and reads the pod's lease, if it has one.
func (n *Network) loadLease(take func(name string) (*os.File, bool)) (store.Lease, router.TrafficFDs, error) {
	fds := router.TrafficFDs{}
	for _, name := range router.TrafficNames {
		if f, ok := take(protocol.KeptTraffic + name); ok {
			fds[name] = f
		}
	}
	had, err := n.store.Lease()
	return had, fds, err
}

// applyLease sets the pod's addresses and mode from its recorded lease.
func (n *Network) applyLease(had store.Lease) {
	n.Slot, n.Masquerades, n.MasqueradeError = ipam.Slot(had.Slot), had.Masqueraded, had.NoMasqueradeReason
}
