package store

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/podrun/podrun/internal/protocol"
)

// Lease is a living pod's slot in its user's pod network.
type Lease struct {
	Slot      int          `json:"slot"`      // the pod's number
	Addresses []netip.Addr `json:"addresses"` // derived from the slot

	// Gateway has the router's addresses if the pod has addresses of a cluster's node (PodNetwork).
	Gateway []netip.Addr `json:"gateway,omitempty"`

	// Masqueraded means that the pod's outgoing packets are handled by the kernel alone, with the
	// masquerading rules that all pods of root share. NoMasqueradeReason is the reason if that was
	// tried and failed.
	Masqueraded        bool   `json:"masqueraded,omitempty"`
	NoMasqueradeReason string `json:"noMasqueradeReason,omitempty"`
}

const leaseFile = "lease.json" // in the runtime directory

// Lease reads the pod's lease; fs.ErrNotExist if it has none.
func (p Pod) Lease() (Lease, error) {
	var l Lease
	if err := readJSON(filepath.Join(p.runtime, leaseFile), &l); err != nil {
		return Lease{}, fmt.Errorf("read lease of pod %s: %w", p.Name, err)
	}
	return l, nil
}

// WriteLease records the pod's lease. The caller holds LockSharedResources.
func (p Pod) WriteLease(l Lease) error {
	if err := writeJSON(WriteVolatile, filepath.Join(p.runtime, leaseFile), l); err != nil {
		return fmt.Errorf("save lease of pod %s: %w", p.Name, err)
	}
	return nil
}

// OtherLease is the lease of another pod of the user. It counts only while that pod is alive.
type OtherLease struct {
	Slot        int  `json:"slot"`
	Masqueraded bool `json:"masqueraded"`

	dirs            Dirs
	namespace, name string
}

// Alive reports whether the pod is alive.
func (l OtherLease) Alive() bool { return l.dirs.Pod(l.namespace, l.name).Alive() }

// OtherLeases returns the leases of the user's other pods. A caller that adds a lease holds
// LockSharedResources.
func (p Pod) OtherLeases() (all []OtherLease, err error) {
	for other, err := range p.dirs.eachName() {
		if err != nil {
			return nil, err
		}
		data := p.dirs.podData(other.namespace, other.name)
		if data == p.data {
			continue
		}
		l := OtherLease{dirs: p.dirs, namespace: other.namespace, name: other.name}
		if err := readJSON(filepath.Join(data, protocol.FileRuntime, leaseFile), &l); err == nil { // else it has none yet
			all = append(all, l)
		}
	}
	return all, nil
}

// BeginSweep records that the caller begins to remove what dead pods have left in the user's router. If another pod
// has done so less than a time ago, BeginSweep records nothing and returns how long the caller has to wait.
func (p Pod) BeginSweep(interval time.Duration) (wait time.Duration, err error) {
	mark := filepath.Join(p.dirs.Runtime, "sweep") // its modification time is the time of the last sweep
	if st, err := os.Stat(mark); err == nil {
		if since := time.Since(st.ModTime()); since >= 0 && since < interval {
			return interval - since, nil
		}
	}
	if err := WriteVolatile(mark, nil); err != nil {
		return 0, fmt.Errorf("record the sweep of the router: %w", err)
	}
	return 0, nil
}

// LockSharedResources is Dirs.LockSharedResources of the pod's user.
func (p Pod) LockSharedResources() (*FileLock, error) { return p.dirs.LockSharedResources() }
