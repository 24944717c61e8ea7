package netns

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The two ends of a pod's pair of devices know each other from the start. Else they ask for
// each other by the first packet, of IPv6 in groups that the kernel joins later, on a thread
// of its own: a question that comes before is lost, and asked again after a second.

// podMAC and linkMAC are the hardware addresses of the pod's end and of the router's: of
// those that everybody may give (IEEE 802).
func podMAC(s Slot) []byte  { return []byte{0x02, 'p', 'o', 'd', byte(s >> 8), byte(s)} }
func linkMAC(s Slot) []byte { return []byte{0x02, 'p', 'o', 'd', 0x80 | byte(s>>8), byte(s)} }

// neighbour says who has an address on a device's link.
func (b *batch) neighbour(index int, a netip.Addr, mac []byte) {
	msg := &netlink.Ndmsg{Family: uint8(familyOf(a)), Index: uint32(index), State: netlink.NUD_PERMANENT}
	b.add(part{what: fmt.Sprintf("add neighbour %s", a)}, unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_REPLACE,
		msg, attribute(netlink.NDA_DST, a.AsSlice()), attribute(netlink.NDA_LLADDR, mac))
}
