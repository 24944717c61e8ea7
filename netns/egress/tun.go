package egress

import (
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/netns/relay"
)

// readTUN handles the packets that the kernel could not handle alone: first packets of connections
// and echo requests. It drops others.
func (e *Proxy) readTUN(fd int) error {
	b := make([]byte, 1<<16)
	return e.loop.Watch(fd, relay.Readable, func(uint32) {
		e.reading.RLock()
		defer e.reading.RUnlock()
		switch n, err := unix.Read(fd, b); err { // pod init shares the file and may have made it blocking
		case nil:
			e.handlePacket(b[:n])
		case unix.EAGAIN, unix.EINTR:
		default: // the device is gone and would report events without end
			e.loop.Unwatch(fd, false)
		}
	})
}

func (e *Proxy) handlePacket(b []byte) {
	p, ok := parse(b)
	if !ok {
		return
	}
	if f, ok := p.isSYN(); ok {
		e.handleSYN(f, p)
	} else if p.isEchoRequest() {
		e.forwardEcho(p)
	}
}

// inject sends a packet to the pod, or back into the router, as if it came from the host's network.
// A packet is lost if there is no room for it, as any may be: the device has no queue to wait for,
// even if another process has made the descriptor blocking.
func (e *Proxy) inject(b []byte) {
	if e.write != nil {
		e.write(b)
		return
	}
	raw, err := e.tun.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = rawsys.Write(int(fd), b) })
	}
}

// gateway returns the router's address of a packet's family.
func (e *Proxy) gateway(p packet) netip.Addr {
	if p.src.Is4() {
		return e.config.Pool.Gateway().V4
	}
	return e.config.Pool.Gateway().V6
}

// echoTimeout is how long an echo request waits for an answer.
const echoTimeout = 10 * time.Second

// forwardEcho sends an echo request from the host's network through a socket that needs no
// privilege.
func (e *Proxy) forwardEcho(p packet) {
	to, ok := e.hostTarget("ICMP", netip.AddrPortFrom(p.dst, 0))
	if !ok {
		e.inject(icmpUnreachable(p, e.gateway(p), noRoute))
		return
	}
	if !e.acquireFlow() {
		return
	}
	domain, protocol := unix.AF_INET, unix.IPPROTO_ICMP
	if p.src.Is6() {
		domain, protocol = unix.AF_INET6, unix.IPPROTO_ICMPV6
	}
	fd, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
	if err != nil { // net.ipv4.ping_group_range
		e.releaseFlow()
		e.inject(icmpUnreachable(p, e.gateway(p), forbidden))
		return
	}
	if err := unix.Sendto(fd, p.payload, 0, rawsys.Sockaddr(to)); err != nil {
		unix.Close(fd)
		e.releaseFlow()
		e.inject(e.errorReply(p, err))
		return
	}
	request := p.clone()
	socket := os.NewFile(uintptr(fd), "echo")
	e.udp.running.Go(func() {
		defer e.releaseFlow()
		defer socket.Close()
		e.awaitEchoReply(request, socket)
	})
}

func (e *Proxy) awaitEchoReply(request packet, socket *os.File) {
	if !e.udp.add(socket) {
		return
	}
	defer e.udp.remove(socket)
	socket.SetReadDeadline(time.Now().Add(echoTimeout))
	held := buffers.Get().(*[maxDatagram]byte)
	defer buffers.Put(held)
	n, err := socket.Read(held[:])
	switch {
	case err == nil && n >= 8:
		e.inject(echoReply(request, held[:n]))
	case err != nil && !os.IsTimeout(err):
		if answer := e.errorReply(request, err); answer != nil {
			e.inject(answer)
		}
	}
}
