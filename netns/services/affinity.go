package services

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nft"
	"github.com/podrun/podrun/internal/nsthread"
)

// Affinity maps each client of a node port to the pod that it stays with. It is the same pod to which the
// Service's address leads the client. The zero Affinity has no pods.
type Affinity struct {
	addresses []netip.Addr // of the Service
	timeout   time.Duration
	v4, v6    []netip.AddrPort // by slot; empty: no pod has an address of this family
	userSpace []netip.Addr     // of pods with a user-space stack
}

// Affinity returns the Affinity of a node port; the zero Affinity if no Service has the port.
func (d *Catalog) Affinity(protocol string, node uint16) Affinity {
	for i := range d.Services {
		s := &d.Services[i]
		for _, p := range s.Ports {
			if node == 0 || p.NodePort != node || p.Protocol != protocol {
				continue
			}
			pods := d.Endpoints(s)
			stays := Affinity{addresses: s.Addresses, timeout: s.Affinity, v4: bySlot(p.endpoints(pods, true)), v6: bySlot(p.endpoints(pods, false))}
			for _, b := range pods {
				if b.UserSpaceStack {
					stays.userSpace = append(stays.userSpace, b.Addresses...)
				}
			}
			return stays
		}
	}
	return Affinity{}
}

// Endpoint returns the address of a client's pod, of the client's own family if the pod has one. The
// address is not valid if there is no pod. shown reports whether the pod may see the client's address: it may if
// the pod's replies to any address pass through the router.
func (s Affinity) Endpoint(client netip.Addr, known Slots) (to netip.AddrPort, shown bool) {
	client = client.Unmap().WithZone("")
	list := s.v4
	if client.Is6() && len(s.v6) > 0 {
		list = s.v6
	}
	if len(list) == 0 {
		return netip.AddrPort{}, false
	}
	to = list[known.Slot(ofFamily(s.addresses, client), client, s.timeout)]
	return to, !slices.Contains(s.userSpace, to.Addr())
}

// ofFamily returns the first of a Service's addresses that is of the client's family, or else the first. Services without
// an address are not told apart: a client has the same slot in all.
func ofFamily(addresses []netip.Addr, client netip.Addr) netip.Addr {
	if len(addresses) == 0 {
		return netip.IPv4Unspecified()
	}
	return addresses[max(slices.IndexFunc(addresses, func(a netip.Addr) bool { return a.Is4() == client.Is4() }), 0)]
}

// Slots gives clients of Services their affinity slots.
type Slots interface {
	// Slot returns the slot of a client of a Service, which is given by its address. It stays the same until the client
	// has not connected for the timeout.
	Slot(service, client netip.Addr, timeout time.Duration) int
}

// Clients are the Slots that the router's table has. Its rules record the clients of Services' addresses there, and
// Slot the clients of node ports and of endpoints outside the pods' network.
type Clients struct {
	router string
	mu     sync.Mutex
	recent map[affinityKey]recentSlot
}

// NewClients returns the Clients of a router.
func NewClients(router string) *Clients { return &Clients{router: router} }

type affinityKey struct{ service, client netip.Addr }

// recentSlot is a slot that needs no look at the table until a time.
type recentSlot struct {
	slot  int
	until time.Time
}

const (
	recentShare = 8    // of the timeout: that long a slot needs no look at the table
	maxRecent   = 4096 // slots
)

// Slot implements Slots.
func (c *Clients) Slot(service, client netip.Addr, timeout time.Duration) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := affinityKey{service, client}
	if r, ok := c.recent[key]; ok && time.Now().Before(r.until) {
		return r.slot
	}
	slot, err := 0, error(nil)
	for range 3 { // another process may record the client at the same time
		if slot, err = recordClient(c.router, key, timeout+timeout/recentShare); err == nil {
			break
		}
	}
	if err != nil { // the table is full, or does not have the Service yet
		return int(weight(0, client) % affinitySlots)
	}
	if c.recent == nil || len(c.recent) >= maxRecent {
		c.recent = map[affinityKey]recentSlot{}
	}
	c.recent[key] = recentSlot{slot, time.Now().Add(timeout / recentShare)}
	return slot
}

// recordClient returns the slot of a client in the router's table, a new one if it has none, and renews the time for
// which it stays.
func recordClient(router string, key affinityKey, timeout time.Duration) (slot int, err error) {
	err = nsthread.Do(func() error {
		f, bytes := v4, append(key.service.AsSlice(), key.client.AsSlice()...)
		if !key.service.Is4() || !key.client.Is4() {
			service, client := key.service.As16(), key.client.As16()
			f, bytes = v6, append(service[:], client[:]...)
		}
		set := f.clientSet(&nftables.Table{Name: tableName, Family: nftables.TableFamilyINet})
		value, err := nft.ReadElement(set, bytes)
		known := err == nil && len(value) == 4
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
		slot = rand.IntN(affinitySlots)
		if known {
			slot = int(binary.NativeEndian.Uint32(value)) % affinitySlots
		}
		element := nftables.SetElement{Key: bytes, Val: binary.NativeEndian.AppendUint32(nil, uint32(slot)), Timeout: timeout}
		return nft.Transact(func(c *nftables.Conn) error {
			if known { // an element keeps its time otherwise
				if err := c.SetDeleteElements(set, []nftables.SetElement{{Key: bytes}}); err != nil {
					return err
				}
			}
			return c.SetAddElements(set, []nftables.SetElement{element})
		})
	}, router)
	return slot, err
}
