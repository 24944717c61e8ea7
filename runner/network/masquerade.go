package network

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/netns/masquerade"
	"github.com/podrun/podrun/netns/router"
)

// All of root's pods use one masquerade device. The first pod makes the device, the last one removes it, and the
// leases record which pods use it. The device and the leases are read and changed only under the lock of leases.

// setUpMasquerade makes the kernel masquerade what the pod sends, where mode requests it or where it is
// certain to work. It returns the largest size of packets to others (mtu), or 0 without masquerading.
func (n *Network) setUpMasquerade(mode pod.NetworkMode, router router.Router) (mtu int, err error) {
	n.Masquerades, n.MasqueradeError = false, ""
	had, _ := n.store.Lease() // of an earlier sandbox, if any
	if mode == pod.NetworkMasquerade || mode == pod.NetworkAuto && masquerade.IsHostRoot() {
		// The lease is written first: after a crash it names what has to be removed.
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
		n.MasqueradeError = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	if had.Masqueraded {
		if err := n.removeMasquerade(router); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	return 0, nil
}

func (n *Network) writeLease(leaves bool) error {
	l := store.Lease{Slot: int(n.Slot), Addresses: n.Addresses(), Masqueraded: leaves, NoMasqueradeReason: n.MasqueradeError}
	if g := n.Pool.Gateway(); n.Pool.HasNode() {
		l.Gateway = []netip.Addr{g.V4, g.V6}
	}
	return n.store.WriteLease(l)
}

// repairMasquerade restores rules that others have removed. A reload of the host's firewall removes all
// rules.
func (n *Network) repairMasquerade() {
	err := n.withLock(func() error {
		if had, err := n.store.Lease(); err != nil || !had.Masqueraded {
			return nil // the pod is ending
		}
		return masquerade.Repair(router.Open(n.router()))
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// dropMasquerade ends the pod's use of the masquerade device, if its lease records one, and removes the device
// unless other pods use it.
func (n *Network) dropMasquerade() error {
	if n.router() == "" {
		return nil
	}
	if had, err := n.store.Lease(); err != nil || !had.Masqueraded { // no other process changes this pod's lease
		return nil
	}
	return n.withLock(func() error {
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

// removeMasquerade removes the masquerade device. The caller holds the lock.
func (n *Network) removeMasquerade(router router.Router) error {
	others, err := n.store.OtherLeases()
	if err != nil || slices.ContainsFunc(others, func(l store.OtherLease) bool { return l.Masqueraded && l.Alive() }) {
		return err
	}
	return masquerade.Remove(router)
}
