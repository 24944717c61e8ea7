package network

import (
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/netns/ipam"
	"github.com/podrun/podrun/netns/router"
)

// preparePool prepares the router, and returns its address pool, with the networks that a cluster has given to
// this host. The caller holds the lock of the router.
func (n *Network) preparePool(router router.Router) (ipam.Pool, error) {
	is, err := n.store.PodNetwork()
	if err != nil {
		return ipam.Pool{}, err
	}
	pool, err := router.Prepare(append(is.Others(), is.CIDRs...)...)
	if err != nil || len(is.CIDRs) == 0 {
		return pool, err
	}
	for _, c := range is.CIDRs {
		if c.Overlaps(pool.V4) || c.Overlaps(pool.V6) { // the router is older than the host's part in the cluster
			return ipam.Pool{}, report.New(report.Failure, "stop all pods of this user, so that the next ones get another router",
				"the cluster's network %s for the pods of this host overlaps the router's network", c)
		}
	}
	if !is.Node.IsValid() {
		return withNode(pool, is), router.RefusePeers(is.CIDRs, is.Others())
	}
	made, err := router.ConnectNode(is.Node, is.CIDRs)
	if made && err == nil {
		err = router.SetPeers(is.CIDRs, is.Others())
	}
	return withNode(pool, is), err
}

// withNode returns the pool of a host with its part in a pod network.
func withNode(p ipam.Pool, is store.PodNetwork) ipam.Pool {
	for _, c := range is.CIDRs {
		if c.Addr().Is4() {
			p.NodeV4 = c
		} else {
			p.NodeV6 = c
		}
	}
	p.NodeMTU = is.MTU
	return p
}

// setPool sets the pool of a pod that has a lease.
func (n *Network) setPool(pool ipam.Pool, had store.Lease) error {
	n.Pool = pool
	if len(had.Gateway) == 0 {
		return nil
	}
	is, err := n.store.PodNetwork()
	if err != nil {
		return err
	}
	n.Pool = withNode(pool, is)
	return nil
}
