package egress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/netns/ipam"
)

// packetPod is a pod in packet mode. Nothing reads its packets.
func (w *testbed) packetPod(s ipam.Slot) *testPod {
	w.t.Helper()
	p := w.attach(s)
	traffic, err := w.Router.OpenPackets(w.Pool, s)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { traffic.Close() })
	return p
}

// anySource disables the router's source checks for a pod's device, except the checks of its rules.
func (p *testPod) anySource() *testPod {
	p.t.Helper()
	err := p.Router.Do(func() error {
		return os.WriteFile(fmt.Sprintf("/proc/sys/net/ipv4/conf/p%d/rp_filter", p.slot), []byte("0"), 0)
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return p
}

// A pod's packets with a foreign source reach no other pod and no session of another pod.
func TestSpoofedPackets(t *testing.T) {
	w := newTestbed(t)
	p, to := w.pod(1), w.pod(4)
	impostors := []*testPod{w.pod(2).anySource(), w.packetPod(3).anySource()}
	sources := [][]netip.Addr{{p.own.V4}, {p.own.V6, mustAddr("fe80::5"), netip.IPv6Unspecified()}}
	for i, address := range []netip.AddrPort{netipPort(to.own.V4, 53), netipPort(to.own.V6, 53), netip.MustParseAddrPort(nettest.RemoteAddr + ":53"), netip.MustParseAddrPort("[" + nettest.RemoteAddr6 + "]:53")} {
		ns := to.ns
		if i > 1 {
			ns = w.Remote
		}
		received := nettest.ListenPacket(t, ns, address.String())
		received.SetDeadline(time.Now().Add(time.Minute))
		hears := func(want string) {
			t.Helper()
			b := make([]byte, 100)
			n, from, err := received.ReadFrom(b)
			if err != nil || string(b[:n]) != want {
				t.Errorf("%s hears %q from %v (%v), want %q", address, b[:n], from, err, want)
			}
		}
		self := netipPort(p.own.V4, 4000)
		if address.Addr().Is6() {
			self = netipPort(p.own.V6, 4000)
		}
		sendRaw(t, p.ns, says(self, address, "first"))
		hears("first")
		for _, impostor := range impostors {
			for _, source := range sources[i%2] {
				sendRaw(t, impostor.ns, says(netip.AddrPortFrom(source, 4000), address, "false"))
			}
		}
		sendRaw(t, p.ns, says(self, address, "true"))
		hears("true")
	}
}

// says returns a UDP packet.
func says(src, dst netip.AddrPort, text string) []byte {
	u := make([]byte, 8, 8+len(text))
	binary.BigEndian.PutUint16(u, src.Port())
	binary.BigEndian.PutUint16(u[2:], dst.Port())
	binary.BigEndian.PutUint16(u[4:], uint16(8+len(text)))
	u = append(u, text...)
	putChecksum(u[6:], src.Addr(), dst.Addr(), protoUDP, u)
	return ipPacket(src.Addr(), dst.Addr(), protoUDP, u)
}

// A socket of the router receives an ICMP error about what it has sent to a pod from that pod,
// whatever address it acts for, and from no other host.
func TestICMPErrorsOnlyForOwnPackets(t *testing.T) {
	w := newTestbed(t)
	p := w.pod(1)
	impostors := []*testPod{w.pod(2), w.packetPod(3)}
	g := w.Pool.Gateway()
	for _, far := range []netip.AddrPort{
		netip.MustParseAddrPort(nettest.RemoteAddr + ":53"), netip.MustParseAddrPort("[" + nettest.RemoteAddr6 + "]:53"), netipPort(g.V4, 5353), netipPort(g.V6, 5353),
	} {
		of := func(a ipam.Addresses) netip.Addr {
			if far.Addr().Is4() {
				return a.V4
			}
			return a.V6
		}
		pod := netip.AddrPortFrom(of(p.own), 4000)
		var near *net.UDPConn
		err := w.Router.Do(func() (err error) { near, err = dialTransparent(far, pod); return err })
		if err != nil {
			t.Fatal(err)
		}
		defer near.Close()
		near.SetDeadline(time.Now().Add(time.Minute))
		sent, _ := parse(says(far, pod, "word"))
		for _, impostor := range impostors {
			to := []netip.Addr{far.Addr(), of(g)}
			if far.Addr().Is6() {
				to = append(to, mustAddr("fe80::1"))
			}
			for _, address := range to {
				sendRaw(t, impostor.ns, complaint(sent, of(impostor.own), address))
			}
		}
		sendRaw(t, p.ns, says(pod, far, "answer"))
		b := make([]byte, 100)
		if n, err := near.Read(b); err != nil || string(b[:n]) != "answer" {
			t.Errorf("%s: %q, %v: another pod has complained of what this one was sent", far, b[:n], err)
		}
		sendRaw(t, p.ns, complaint(sent, pod.Addr(), far.Addr()))
		if n, err := near.Read(b); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("%s: %q, %v, want what the pod complains of", far, b[:n], err)
		}
	}
}

// complaint returns a port-unreachable error about a packet.
func complaint(of packet, from, to netip.Addr) []byte {
	of.src = to
	return icmpUnreachable(of, from, noPort)
}

// A datagram without a usable source starts no session.
func TestFlowWithoutSource(t *testing.T) {
	control := make([]byte, unix.CmsgSpace(unix.SizeofSockaddrInet6))
	h := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
	h.Level, h.Type = unix.SOL_IPV6, unix.IPV6_ORIGDSTADDR
	h.SetLen(unix.CmsgLen(unix.SizeofSockaddrInet6))
	to := (*unix.RawSockaddrInet6)(unsafe.Pointer(&control[unix.CmsgLen(0)]))
	to.Family, to.Addr = unix.AF_INET6, mustAddr(nettest.RemoteAddr6).As16()
	for from, want := range map[string]bool{"fd00::5": true, "::": false, "fe80::5": false} {
		if f, ok := flowOf(control, &unix.SockaddrInet6{Addr: mustAddr(from).As16(), Port: 5}); ok != want {
			t.Errorf("from %s: %v, %v", from, f, ok)
		}
	}
}

// A pod's packets with a foreign source are dropped even if they match a connection of that
// address.
func TestSpoofedSources(t *testing.T) {
	w := newTestbed(t)
	p, others := w.pod(1), []*testPod{w.pod(2).anySource(), w.packetPod(3).anySource()}
	for _, address := range []string{nettest.RemoteAddr + ":80", "[" + nettest.RemoteAddr6 + "]:80"} {
		nettest.Serve(t, w.Remote, address, nettest.Echo)
		c, err := nettest.Dial(p.ns, "tcp", address)
		if err == nil {
			err = nettest.RoundTrip(c, []byte("word"))
		}
		if err != nil {
			t.Fatalf("%s: %v", address, err)
		}
		defer c.Close()
		end := resetOf(t, c)
		for _, other := range others {
			sendRaw(t, other.ns, end)
		}
		if err := nettest.RoundTrip(c, []byte("word")); err != nil {
			t.Errorf("%s: another pod has ended the connection: %v", address, err)
		}
		sendRaw(t, p.ns, resetOf(t, c))
		if nettest.RoundTrip(c, []byte("word")) == nil {
			t.Errorf("%s: the pod's own reset does not end the connection: this test proves nothing", address)
		}
	}
}

// resetOf returns a packet that resets a connection, as its client would send it now.
func resetOf(t *testing.T, c net.Conn) []byte {
	t.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var number int
	const sendQueue, off = 2, -1 // TCP_SEND_QUEUE, TCP_REPAIR_OFF_NO_WP (linux/tcp.h)
	cerr := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_TCP, unix.TCP_REPAIR, 1)
		if err == nil {
			err = unix.SetsockoptInt(int(fd), unix.SOL_TCP, unix.TCP_REPAIR_QUEUE, sendQueue)
		}
		if err == nil {
			number, err = unix.GetsockoptInt(int(fd), unix.SOL_TCP, unix.TCP_QUEUE_SEQ)
		}
		err = errors.Join(err, unix.SetsockoptInt(int(fd), unix.SOL_TCP, unix.TCP_REPAIR, off))
	})
	if err = errors.Join(cerr, err); err != nil {
		t.Fatal(err)
	}
	from, to := c.LocalAddr().(*net.TCPAddr).AddrPort(), c.RemoteAddr().(*net.TCPAddr).AddrPort()
	b := make([]byte, 20)
	binary.BigEndian.PutUint16(b, from.Port())
	binary.BigEndian.PutUint16(b[2:], to.Port())
	binary.BigEndian.PutUint32(b[4:], uint32(number))
	b[12], b[13] = 5<<4, flagRST
	src, dst := from.Addr().Unmap(), to.Addr().Unmap()
	putChecksum(b[16:], src, dst, protoTCP, b)
	return ipPacket(src, dst, protoTCP, b)
}

// sendRaw sends a packet from a namespace without changes.
func sendRaw(t *testing.T, ns string, b []byte) {
	t.Helper()
	p, _ := parse(b)
	nettest.Do(t, ns, func() error {
		family := unix.AF_INET
		if p.src.Is6() {
			family = unix.AF_INET6
		}
		fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, b, 0, rawsys.Sockaddr(netip.AddrPortFrom(p.dst, 0)))
	})
}
