package network

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/netns/ipam"
	"github.com/podrun/podrun/netns/masquerade"
	"github.com/podrun/podrun/netns/router"
	"github.com/podrun/podrun/pod"
)

// The way out of root's pods is one for all: the first of them makes it, the last one
// removes it, and which of them use it stands in their leases. Whoever looks or changes
// anything holds the lock of leases.

// setUpMasquerade has the kernel lead out what the pod sends, where that is asked for, or where it
// is sure to work; then no packet to others may be longer than mtu.
func (n *Network) setUpMasquerade(mode pod.NetworkMode, router router.Router) (mtu int, err error) {
	n.Masquerades, n.NoMasquerade = false, ""
	had, _ := n.store.Lease() // of an earlier life, if any
	if mode == pod.NetworkMasquerade || mode == pod.NetworkAuto && masquerade.IsHostRoot() {
		// First of all: what dies now leaves word of what is to be removed.
		if err := n.writeLease(true); err != nil {
			return 0, err
		}
		mtu, err = masquerade.Ensure(router)
		if err == nil {
			n.Masquerades = true
			return mtu, nil
		}
		if mode != pod.NetworkAuto {
			return 0, report.New(report.Failure, "another network: podrun up --network tproxy", "the pod cannot have the network %s: %w", mode, err)
		}
		n.NoMasquerade = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	if had.Masqueraded {
		if err := n.removeMasquerade(router); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	return 0, nil
}

func (n *Network) writeLease(leaves bool) error {
	return n.store.WriteLease(store.Lease{Slot: int(n.Slot), Addresses: n.Addresses(), Masqueraded: leaves, NoMasqueradeReason: n.NoMasquerade})
}

// repairMasquerade makes again what others have removed, as who reloads the host's firewall does
// with all rules that there are.
func (n *Network) repairMasquerade() {
	err := n.withLock(func(map[ipam.Slot]bool) error {
		if had, err := n.store.Lease(); err != nil || !had.Masqueraded {
			return nil // the pod is about to end
		}
		return masquerade.Repair(router.Open(n.router()))
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// dropMasquerade removes the way out, unless others need it, if the pod has had it: its lease
// says so, whoever has made it, until it is removed.
func (n *Network) dropMasquerade() error {
	if n.router() == "" {
		return nil
	}
	if had, err := n.store.Lease(); err != nil || !had.Masqueraded { // which nobody else changes
		return nil
	}
	return n.withLock(func(map[ipam.Slot]bool) error {
		had, err := n.store.Lease()
		if err == nil {
			err = n.removeMasquerade(router.Open(n.router()))
		}
		if err == nil {
			had.Masqueraded = false
			err = n.store.WriteLease(had)
		}
		return err
	})
}

// removeMasquerade is for who holds the lock.
func (n *Network) removeMasquerade(router router.Router) error {
	others, err := n.store.OtherLeases()
	if err != nil || slices.ContainsFunc(others, func(l store.Lease) bool { return l.Masqueraded }) {
		return err
	}
	return masquerade.Remove(router)
}
