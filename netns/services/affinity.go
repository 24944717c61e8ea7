package services

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"slices"
)

// Affinity maps each client of a node port to the pod that it stays with. It is the same pod to which the
// Service's address leads the client. The zero Affinity has no pods.
type Affinity struct {
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
			stays := Affinity{v4: bySlot(p.endpoints(pods, true)), v6: bySlot(p.endpoints(pods, false))}
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
func (s Affinity) Endpoint(client netip.Addr) (to netip.AddrPort, shown bool) {
	client = client.Unmap().WithZone("")
	list := s.v4
	if client.Is6() && len(s.v6) > 0 {
		list = s.v6
	}
	if len(list) == 0 {
		return netip.AddrPort{}, false
	}
	to = list[affinitySlot(client)]
	return to, !slices.Contains(s.userSpace, to.Addr())
}

// affinitySlot returns the affinity slot of a client's address. It is the number that the router's
// rules compute (pickSlot); otherwise a client would reach different pods through a node port and
// through the Service's address. (Linux: nft_jhash_eval of net/netfilter/nft_hash.c.)
func affinitySlot(client netip.Addr) int {
	return int(uint64(jhash(client.AsSlice(), affinitySeed)) * affinitySlots >> 32) // reciprocal_scale of linux/kernel.h
}

// jhash is the kernel's hash of an address (include/linux/jhash.h), for the 4 bytes of IPv4 and the
// 16 of IPv6. It reads words in the processor's byte order.
func jhash(key []byte, initval uint32) uint32 {
	a := 0xdeadbeef + uint32(len(key)) + initval
	b, c := a, a
	word := func(i int) uint32 { return binary.NativeEndian.Uint32(key[i:]) }
	if len(key) > 12 {
		a, b, c = mix(a+word(0), b+word(4), c+word(8))
		key = key[12:]
	}
	return final(a+binary.LittleEndian.Uint32(key), b, c)
}

func mix(a, b, c uint32) (uint32, uint32, uint32) {
	a = (a - c) ^ bits.RotateLeft32(c, 4)
	c += b
	b = (b - a) ^ bits.RotateLeft32(a, 6)
	a += c
	c = (c - b) ^ bits.RotateLeft32(b, 8)
	b += a
	a = (a - c) ^ bits.RotateLeft32(c, 16)
	c += b
	b = (b - a) ^ bits.RotateLeft32(a, 19)
	a += c
	c = (c - b) ^ bits.RotateLeft32(b, 4)
	b += a
	return a, b, c
}

func final(a, b, c uint32) uint32 {
	c = (c ^ b) - bits.RotateLeft32(b, 14)
	a = (a ^ c) - bits.RotateLeft32(c, 11)
	b = (b ^ a) - bits.RotateLeft32(a, 25)
	c = (c ^ b) - bits.RotateLeft32(b, 16)
	a = (a ^ c) - bits.RotateLeft32(c, 4)
	b = (b ^ a) - bits.RotateLeft32(a, 14)
	return (c ^ b) - bits.RotateLeft32(b, 24)
}
