package egress

import (
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/netns/relay"
)

// readTUN answers what the kernel could not finish itself: first packets of connections
// and echoes. Other packets are nobody's.
func (e *Proxy) readTUN(fd int) error {
	b := make([]byte, 1<<16)
	return e.loop.Watch(fd, relay.Readable, func(uint32) {
		e.reading.RLock()
		defer e.reading.RUnlock()
		switch n, err := unix.Read(fd, b); err { // the keeper has it, too, and may have it block
		case nil:
			e.handlePacket(b[:n])
		case unix.EAGAIN, unix.EINTR:
		default: // the device has gone, and would be told of for ever
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

// inject sends a packet to the pod, or back into the router, as if it came from the host's
// network. One that finds no room is lost, as any may be: the device has no bound for which to
// wait, whoever may have had the descriptor block.
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

// gateway is the router's address of a packet's family.
func (e *Proxy) gateway(p packet) netip.Addr {
	if p.src.Is4() {
		return e.config.Pool.Gateway().V4
	}
	return e.config.Pool.Gateway().V6
}

// echoTimeout is for how long an answer is waited for.
const echoTimeout = 10 * time.Second

// forwardEcho has the host's kernel ask, by a socket for which no privilege is needed.
func (e *Proxy) forwardEcho(p packet) {
	to, ok := e.hostTarget(netip.AddrPortFrom(p.dst, 0))
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
