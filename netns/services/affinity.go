package services

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"slices"
)

// Affinity says with which pod each client of a port of the machine stays: with the one to which
// the Service's address leads it, too. The zero Stays knows none.
type Affinity struct {
	v4, v6    []netip.AddrPort // by slot; none: there is no pod with such an address
	userSpace []netip.Addr     // of pods with a stack in user space
}

// Affinity is that of a port of the machine.
func (d *Directory) Affinity(protocol string, node uint16) Affinity {
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

// Endpoint is where a client's pod is: at an address of the client's own family, if it has one; not
// valid if there is no pod. shown says that the pod answers any address by way of the router.
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

// affinitySlot is the part of the clients with affinity that an address is in: the number that the
// router's rules give it (number), or a client would find another pod by a port of the machine
// than by the Service's address. (Linux: nft_jhash_eval of net/netfilter/nft_hash.c.)
func affinitySlot(client netip.Addr) int {
	return int(uint64(jhash(client.AsSlice(), affinitySeed)) * affinitySlots >> 32) // reciprocal_scale of linux/kernel.h
}

// jhash is the kernel's hash of an address (include/linux/jhash.h), for the 4 bytes of IPv4
// and the 16 of IPv6. It reads words as the processor has them.
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
