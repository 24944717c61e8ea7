package nlbatch

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Batch collects changes of a network and sends them to the kernel in one message. The kernel sends
// one answer if all succeed. Sending them one by one takes longer than making them.
type Batch struct {
	buf     []byte
	last    int               // offset in buf of the last change
	changes map[uint32]Change // by the sequence number of the change's netlink header
}

// Change is one change.
type Change struct {
	What     string
	ExistsOK bool // an existing object is no error
}

// Add adds a change described by the data: kind is RTM_…, flags are NLM_F_….
func (b *Batch) Add(c Change, kind, flags int, data ...nl.NetlinkRequestData) {
	r := nl.NewNetlinkRequest(kind, flags)
	for _, d := range data {
		r.AddData(d)
	}
	if b.changes == nil {
		b.changes = map[uint32]Change{}
	}
	b.changes[r.Seq] = c
	b.last = len(b.buf)
	b.buf = append(b.buf, r.Serialize()...)
}

// Send makes the changes in the calling thread's network. A failed change does not prevent the
// others.
func (b *Batch) Send() error {
	if len(b.buf) == 0 {
		return nil
	}
	RequestAck(b.buf[b.last:])
	last := binary.NativeEndian.Uint32(b.buf[b.last+8:])
	return Exchange(unix.NETLINK_ROUTE, b.buf, last, func(sequence uint32, errno unix.Errno) error {
		c := b.changes[sequence]
		if c.ExistsOK && errno == unix.EEXIST {
			return nil
		}
		return fmt.Errorf("%s: %w", c.What, errno)
	})
}

// RequestAck makes the kernel answer a part (struct nlmsghdr, linux/netlink.h) even without an
// error.
func RequestAck(part []byte) {
	binary.NativeEndian.PutUint16(part[6:], binary.NativeEndian.Uint16(part[6:])|unix.NLM_F_ACK)
}

// defaultSendBuffer is how much a new socket accepts at once, by net.core.wmem_default.
const defaultSendBuffer = 100 << 10

// Exchange sends a message of many parts to the kernel and reads its errors until the part with the
// number last is answered. It returns the first error that onError returns. All answers are there
// when the message has been sent.
func Exchange(protocol int, message []byte, last uint32, onError func(sequence uint32, errno unix.Errno) error) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return fmt.Errorf("connect to the kernel's network: %w", err)
	}
	defer unix.Close(fd)
	if n := len(message); n > defaultSendBuffer {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 2*n) != nil {
			err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 2*n)
		}
	}
	if err == nil {
		err = unix.Sendto(fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	}
	if err != nil {
		return fmt.Errorf("connect to the kernel's network: %w", err)
	}
	var first error
	answer := make([]byte, 512) // the beginning of a part is enough
	for {
		n, _, err := unix.Recvfrom(fd, answer, unix.MSG_DONTWAIT)
		if err == unix.EINTR {
			continue
		}
		if err == nil && n < unix.SizeofNlMsghdr+4 {
			err = unix.EBADMSG
		}
		if err != nil { // or the kernel has refused the whole message
			return cmp.Or(first, fmt.Errorf("receive from the kernel's network: %w", err))
		}
		if binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
			continue
		}
		sequence := binary.NativeEndian.Uint32(answer[8:])
		errno := unix.Errno(-int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])))
		if errno != 0 && first == nil {
			first = onError(sequence, errno)
		}
		if sequence == last {
			return first
		}
	}
}

// Attr returns an attribute of a part.
func Attr(kind int, value []byte) *nl.RtAttr { return nl.NewRtAttr(kind, value) }

// LinkMessage identifies a device by its index; with up the kernel brings it up.
func LinkMessage(index int, up bool) *nl.IfInfomsg {
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(index)
	if up {
		msg.Flags, msg.Change = unix.IFF_UP, unix.IFF_UP
	}
	return msg
}

// SetUp brings up a device.
func (b *Batch) SetUp(index int, name string, attributes ...nl.NetlinkRequestData) {
	b.Add(Change{What: "bring up " + name}, unix.RTM_SETLINK, 0, append([]nl.NetlinkRequestData{LinkMessage(index, true)}, attributes...)...)
}

// AddAddress gives a device an address. It is usable at once, without duplicate address detection: no other
// host has it.
func (b *Batch) AddAddress(index int, name string, a netip.Prefix) {
	msg := nl.NewIfAddrmsg(Family(a.Addr()))
	msg.Index, msg.Prefixlen = uint32(index), uint8(a.Bits())
	if a.Addr().Is6() {
		msg.Flags = unix.IFA_F_NODAD
	}
	value := a.Addr().AsSlice()
	b.Add(Change{What: fmt.Sprintf("add address %s to %s", a.Addr(), name), ExistsOK: true}, unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL,
		msg, Attr(unix.IFA_LOCAL, value), Attr(unix.IFA_ADDRESS, value))
}

// Route is a route. Zero values mean the kernel's choice, universal scope, or the main table.
type Route struct {
	Dst          netip.Prefix
	Type         byte // RTN_…; unicast if zero
	Scope        byte // RT_SCOPE_…
	Link         int
	Gateway, Src netip.Addr // the gateway is on the link, whatever its address
	Table        int
	Protocol     byte // of its origin, RTPROT_…
	Priority     int
	MTU          int // of its packets
}

// AddRoute adds a route, or replaces one.
func (b *Batch) AddRoute(what string, w Route) {
	msg := nl.NewRtMsg()
	msg.Family, msg.Dst_len, msg.Scope = uint8(Family(w.Dst.Addr())), uint8(w.Dst.Bits()), w.Scope
	if w.Type != 0 {
		msg.Type = w.Type
	}
	if w.Protocol != 0 {
		msg.Protocol = w.Protocol
	}
	data := []nl.NetlinkRequestData{msg, Attr(unix.RTA_DST, w.Dst.Addr().AsSlice())}
	number := func(kind, value int) {
		if value != 0 {
			data = append(data, Attr(kind, nl.Uint32Attr(uint32(value))))
		}
	}
	if w.Gateway.IsValid() {
		msg.Flags = unix.RTNH_F_ONLINK
		data = append(data, Attr(unix.RTA_GATEWAY, w.Gateway.AsSlice()))
	}
	if w.Src.IsValid() {
		data = append(data, Attr(unix.RTA_PREFSRC, w.Src.AsSlice()))
	}
	if w.Table != 0 {
		msg.Table = unix.RT_TABLE_UNSPEC
	}
	number(unix.RTA_TABLE, w.Table)
	number(unix.RTA_PRIORITY, w.Priority)
	number(unix.RTA_OIF, w.Link)
	if w.MTU != 0 {
		metrics := Attr(unix.RTA_METRICS, nil)
		metrics.AddRtAttr(unix.RTAX_MTU, nl.Uint32Attr(uint32(w.MTU)))
		data = append(data, metrics)
	}
	b.Add(Change{What: what}, unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, data...)
}

// AddRule routes matching packets by a table.
func (b *Batch) AddRule(what string, family, table, preference int, match ...nl.NetlinkRequestData) {
	msg := nl.NewRtMsg()
	msg.Family, msg.Table = uint8(family), unix.RT_TABLE_UNSPEC
	data := append([]nl.NetlinkRequestData{msg, Attr(nl.FRA_PRIORITY, nl.Uint32Attr(uint32(preference))),
		Attr(nl.FRA_TABLE, nl.Uint32Attr(uint32(table)))}, match...)
	b.Add(Change{What: what, ExistsOK: true}, unix.RTM_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, data...)
}

// AddGoto makes matching packets skip the rules before the preference to.
func (b *Batch) AddGoto(what string, family, preference, to int, match ...nl.NetlinkRequestData) {
	msg := nl.NewRtMsg()
	msg.Family, msg.Table, msg.Type = uint8(family), unix.RT_TABLE_UNSPEC, nl.FR_ACT_GOTO
	data := append([]nl.NetlinkRequestData{msg, Attr(nl.FRA_PRIORITY, nl.Uint32Attr(uint32(preference))),
		Attr(nl.FRA_GOTO, nl.Uint32Attr(uint32(to)))}, match...)
	b.Add(Change{What: what, ExistsOK: true}, unix.RTM_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, data...)
}

// AddNeighbour sets the MAC address of an address on a device's link.
func (b *Batch) AddNeighbour(index int, a netip.Addr, mac []byte) {
	msg := &netlink.Ndmsg{Family: uint8(Family(a)), Index: uint32(index), State: netlink.NUD_PERMANENT}
	b.Add(Change{What: fmt.Sprintf("add neighbour %s", a)}, unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_REPLACE,
		msg, Attr(netlink.NDA_DST, a.AsSlice()), Attr(netlink.NDA_LLADDR, mac))
}

// Family returns netlink.FAMILY_V4 or FAMILY_V6.
func Family(a netip.Addr) int {
	if a.Is4() {
		return netlink.FAMILY_V4
	}
	return netlink.FAMILY_V6
}

// LoopbackIndex is the index of the loopback device in every network namespace.
const LoopbackIndex = 1
