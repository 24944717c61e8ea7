package store

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/podrun/podrun/internal/pod"
)

// PodNetwork is the part that this host has in the pod network of a cluster. The zero value: its pods
// reach no pods of other hosts.
type PodNetwork struct {
	CIDRs []netip.Prefix   `json:"cidrs"` // of the pods of this host, one or none of each family
	MTU   int              `json:"mtu"`   // of packets to others than pods of this host
	Peers []PodNetworkPeer `json:"peers"`
	Node  netip.Addr       `json:"node,omitzero"` // of this host, if the host's network leads to the peers and to the addresses of all nodes
}

// PodNetworkPeer is another host.
type PodNetworkPeer struct {
	Key      string         `json:"key,omitempty"` // of WireGuard, public
	Endpoint netip.AddrPort `json:"endpoint"`      // with port 0 without WireGuard
	CIDRs    []netip.Prefix `json:"cidrs"`         // of its pods
}

// Others returns the networks of the pods of other hosts and, if the host's network leads to them, the addresses of all
// nodes.
func (n PodNetwork) Others() (all []netip.Prefix) {
	if n.Node.IsValid() {
		all = append(all, netip.PrefixFrom(n.Node, n.Node.BitLen()))
	}
	for _, p := range n.Peers {
		all = append(all, p.CIDRs...)
		if a := p.Endpoint.Addr(); n.Node.IsValid() {
			all = append(all, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return all
}

func (d Dirs) podNetworkFile() string { return filepath.Join(d.Data, "podnetwork.json") }

// PodNetwork returns the host's part in a pod network.
func (d Dirs) PodNetwork() (n PodNetwork, err error) {
	if err := readJSON(d.podNetworkFile(), &n); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return PodNetwork{}, fmt.Errorf("read the pod network: %w", err)
	}
	return n, nil
}

// PodNetwork is Dirs.PodNetwork of the pod's user.
func (p Pod) PodNetwork() (PodNetwork, error) { return p.dirs.PodNetwork() }

// SetPodNetwork changes the host's part in a pod network. The addresses of living pods cannot change: if
// addresses outside the network are in use, it changes nothing and returns the pods that have them.
func (d Dirs) SetPodNetwork(n PodNetwork) (others []Pod, err error) {
	lock, err := d.LockSharedResources()
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	old, err := d.PodNetwork()
	same := slices.Equal(old.CIDRs, n.CIDRs)
	samePeer := func(a, b PodNetworkPeer) bool {
		return a.Key == b.Key && a.Endpoint == b.Endpoint && slices.Equal(a.CIDRs, b.CIDRs)
	}
	if err != nil || same && old.MTU == n.MTU && old.Node == n.Node && slices.EqualFunc(old.Peers, n.Peers, samePeer) {
		return nil, err
	}
	if !same {
		if others, err = d.podsBeyond(n); err != nil || len(others) > 0 {
			return others, err
		}
	}
	if len(n.CIDRs) == 0 {
		err = os.Remove(d.podNetworkFile())
	} else {
		err = writeJSON(WriteFile, d.podNetworkFile(), n)
	}
	if err != nil {
		return nil, fmt.Errorf("save the pod network: %w", err)
	}
	return nil, d.bumpVersion()
}

// podsBeyond returns the living pods whose addresses are outside a network.
func (d Dirs) podsBeyond(n PodNetwork) (others []Pod, err error) {
	for p, err := range d.EachPod() {
		if err != nil {
			return nil, err
		}
		if l, err := p.Lease(); err == nil && p.Alive() && !l.isOf(n) {
			others = append(others, p)
		}
	}
	return others, nil
}

// isOf reports whether a pod's addresses are from a network.
func (l Lease) isOf(n PodNetwork) bool {
	for _, c := range n.CIDRs {
		if slices.ContainsFunc(l.Addresses, func(a netip.Addr) bool { return a.Is4() == c.Addr().Is4() && !c.Contains(a) }) {
			return false
		}
	}
	return (len(n.CIDRs) > 0) == (len(l.Gateway) > 0)
}

// Networks returns the networks of the user's Services, and of the pods if these have none of a cluster.
func (l Lease) Networks() pod.Networks {
	if len(l.Gateway) > 0 {
		return pod.NetworksOf(l.Gateway)
	}
	return pod.NetworksOf(l.Addresses)
}
