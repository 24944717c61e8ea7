package netns

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// batch gathers changes of a network of which the kernel is told in one message, and which
// it answers by one if all is well: to ask for them one by one takes longer than they do.
type batch struct {
	message []byte
	last    int // where its last part begins
	parts   map[uint32]part
}

// part is one change.
type part struct {
	what string
	had  bool // that there is such a thing already is as good
}

// add gathers a change of what is described by the data: kind is of RTM_…, flags of NLM_F_….
func (b *batch) add(p part, kind, flags int, data ...nl.NetlinkRequestData) {
	r := nl.NewNetlinkRequest(kind, flags)
	for _, d := range data {
		r.AddData(d)
	}
	if b.parts == nil {
		b.parts = map[uint32]part{}
	}
	b.parts[r.Seq] = p
	b.last = len(b.message)
	b.message = append(b.message, r.Serialize()...)
}

// send makes the changes in the calling thread's network. One that fails does not keep the
// rest from being made.
func (b *batch) send() error {
	if len(b.message) == 0 {
		return nil
	}
	acknowledge(b.message[b.last:])
	last := binary.NativeEndian.Uint32(b.message[b.last+8:])
	return converse(unix.NETLINK_ROUTE, b.message, last, func(sequence uint32, errno unix.Errno) error {
		p := b.parts[sequence]
		if p.had && errno == unix.EEXIST {
			return nil
		}
		return fmt.Errorf("%s: %w", p.what, errno)
	})
}

// acknowledge has the kernel answer a part (struct nlmsghdr, linux/netlink.h) even if it
// has nothing to complain of.
func acknowledge(part []byte) {
	binary.NativeEndian.PutUint16(part[6:], binary.NativeEndian.Uint16(part[6:])|unix.NLM_F_ACK)
}

// defaultSend is how much a new socket takes at once, by net.core.wmem_default.
const defaultSend = 100 << 10

// converse sends a message of many parts to the kernel, and looks at its complaints, of
// which it passes on the first that counts as an error, until the part with the number last
// is answered. All answers are there when the message has been sent.
func converse(protocol int, message []byte, last uint32, complaint func(sequence uint32, errno unix.Errno) error) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return fmt.Errorf("speak to the kernel's network: %w", err)
	}
	defer unix.Close(fd)
	if n := len(message); n > defaultSend {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 2*n) != nil {
			err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 2*n)
		}
	}
	if err == nil {
		err = unix.Sendto(fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	}
	if err != nil {
		return fmt.Errorf("speak to the kernel's network: %w", err)
	}
	var first error
	answer := make([]byte, 512) // the beginning of a part is all that is needed
	for {
		n, _, err := unix.Recvfrom(fd, answer, unix.MSG_DONTWAIT)
		if err == unix.EINTR {
			continue
		}
		if err == nil && n < unix.SizeofNlMsghdr+4 {
			err = unix.EBADMSG
		}
		if err != nil { // or it has refused the message as a whole
			return cmp.Or(first, fmt.Errorf("hear from the kernel's network: %w", err))
		}
		if binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
			continue
		}
		sequence := binary.NativeEndian.Uint32(answer[8:])
		errno := unix.Errno(-int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])))
		if errno != 0 && first == nil {
			first = complaint(sequence, errno)
		}
		if sequence == last {
			return first
		}
	}
}

// attribute is one of a part.
func attribute(kind int, value []byte) *nl.RtAttr { return nl.NewRtAttr(kind, value) }

// link names a device by its number; up has it brought up.
func link(index int, up bool) *nl.IfInfomsg {
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(index)
	if up {
		msg.Flags, msg.Change = unix.IFF_UP, unix.IFF_UP
	}
	return msg
}

// bringUp brings up a device.
func (b *batch) bringUp(index int, name string, attributes ...nl.NetlinkRequestData) {
	b.add(part{what: "bring up " + name}, unix.RTM_SETLINK, 0, append([]nl.NetlinkRequestData{link(index, true)}, attributes...)...)
}

// address gives a device an address; one that is nobody else's is usable at once.
func (b *batch) address(index int, name string, a netip.Prefix) {
	msg := nl.NewIfAddrmsg(familyOf(a.Addr()))
	msg.Index, msg.Prefixlen = uint32(index), uint8(a.Bits())
	if a.Addr().Is6() {
		msg.Flags = unix.IFA_F_NODAD
	}
	value := a.Addr().AsSlice()
	b.add(part{what: fmt.Sprintf("add address %s to %s", a.Addr(), name), had: true}, unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL,
		msg, attribute(unix.IFA_LOCAL, value), attribute(unix.IFA_ADDRESS, value))
}

// way is a route. What is zero is the kernel's choice, or universal, or the main table's.
type way struct {
	to       netip.Prefix
	kind     byte // RTN_…; a way to somebody without it
	scope    byte // RT_SCOPE_…
	link     int
	by, from netip.Addr // by a gateway, which is on the link whatever its address
	table    int
	priority int
	mtu      int // of packets that go it
}

// route adds a route, or replaces one.
func (b *batch) route(what string, w way) {
	msg := nl.NewRtMsg()
	msg.Family, msg.Dst_len, msg.Scope = uint8(familyOf(w.to.Addr())), uint8(w.to.Bits()), w.scope
	if w.kind != 0 {
		msg.Type = w.kind
	}
	data := []nl.NetlinkRequestData{msg, attribute(unix.RTA_DST, w.to.Addr().AsSlice())}
	number := func(kind, value int) {
		if value != 0 {
			data = append(data, attribute(kind, nl.Uint32Attr(uint32(value))))
		}
	}
	if w.by.IsValid() {
		msg.Flags = unix.RTNH_F_ONLINK
		data = append(data, attribute(unix.RTA_GATEWAY, w.by.AsSlice()))
	}
	if w.from.IsValid() {
		data = append(data, attribute(unix.RTA_PREFSRC, w.from.AsSlice()))
	}
	if w.table != 0 {
		msg.Table = unix.RT_TABLE_UNSPEC
	}
	number(unix.RTA_TABLE, w.table)
	number(unix.RTA_PRIORITY, w.priority)
	number(unix.RTA_OIF, w.link)
	if w.mtu != 0 {
		metrics := attribute(unix.RTA_METRICS, nil)
		metrics.AddRtAttr(unix.RTAX_MTU, nl.Uint32Attr(uint32(w.mtu)))
		data = append(data, metrics)
	}
	b.add(part{what: what}, unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, data...)
}

// rule has packets routed by a table: those that match.
func (b *batch) rule(what string, family, table, preference int, match ...nl.NetlinkRequestData) {
	msg := nl.NewRtMsg()
	msg.Family, msg.Table = uint8(family), unix.RT_TABLE_UNSPEC
	data := append([]nl.NetlinkRequestData{msg, attribute(nl.FRA_PRIORITY, nl.Uint32Attr(uint32(preference))),
		attribute(nl.FRA_TABLE, nl.Uint32Attr(uint32(table)))}, match...)
	b.add(part{what: what, had: true}, unix.RTM_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, data...)
}
