package runner

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/netns"
	"github.com/podrun/podrun/netns/uplink"
	"github.com/podrun/podrun/pod"
)

// The way out of root's pods is one for all: the first of them makes it, the last one
// removes it, and which of them use it stands in their leases. Whoever looks or changes
// anything holds the lock of leases.

// wayOut has the kernel lead out what the pod sends, where that is asked for, or where it
// is sure to work; then no packet to others may be longer than mtu.
func (s *sandbox) wayOut(mode pod.NetworkMode, router netns.Router) (mtu int, err error) {
	s.leaves, s.stays = false, ""
	if mode != pod.NetworkMasquerade && (mode != pod.NetworkAuto || !uplink.Root()) {
		return 0, nil
	}
	mtu, err = uplink.Make(router)
	switch {
	case err == nil:
		s.leaves = true
	case mode == pod.NetworkAuto:
		s.stays = strings.ReplaceAll(err.Error(), "\n", "; ")
	default:
		return 0, report.New(report.Failure, "another network: podrun up --network tproxy", "the pod cannot have the network %s: %w", mode, err)
	}
	return mtu, nil
}

func (s *sandbox) writeLease() error {
	return s.store.WriteLease(store.Lease{Slot: int(s.slot), Addresses: s.addresses(), Leaves: s.leaves, Stays: s.stays})
}

// mendWayOut makes again what others have removed, as who reloads the host's firewall does
// with all rules that there are.
func (s *sandbox) mendWayOut() {
	err := s.underLock(func(map[netns.Slot]bool) error {
		if had, err := s.store.Lease(); err != nil || !had.Leaves {
			return nil // the pod is about to end
		}
		return uplink.Mend(netns.OpenRouter(s.router()))
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// leaveWayOut removes the way out, unless others need it.
func (s *sandbox) leaveWayOut() error {
	if !s.leaves {
		return nil
	}
	s.leaves = false
	return s.underLock(func(map[netns.Slot]bool) error {
		if err := s.writeLease(); err != nil {
			return err
		}
		others, err := s.store.OtherLeases()
		if err != nil || slices.ContainsFunc(others, func(l store.Lease) bool { return l.Leaves }) {
			return err
		}
		return uplink.Remove(netns.OpenRouter(s.router()))
	})
}
