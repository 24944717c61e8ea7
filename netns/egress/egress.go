// Package egress forwards what a pod sends to destinations other than pods: it makes the same connections
// in the host's network, with the host's routes, as the user that runs the pod, and joins them to the pod's
// own. On both sides the kernel runs TCP; the proxy splices bytes from one side to the other. Ordinary
// threads of a process in the host's network serve the pod's traffic. Only transparent sockets
// (IP_TRANSPARENT) are made in the router's namespace.
package egress

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/netns/ipam"
	"github.com/podrun/podrun/netns/relay"
	"github.com/podrun/podrun/netns/router"
)

// Config describes the pod.
type Config struct {
	RouterNS     string // path of the router's network namespace
	Pool         ipam.Pool
	Slot         ipam.Slot
	HostLoopback bool // ipam.HostLoopback leads to the host's loopback

	// Names answers the pod's queries to the gateway's port 53; nil: the port is closed.
	Names Resolver

	// Endpoint returns an endpoint of a Service outside the pods' network, for a connection or session of a
	// protocol, "TCP" or "UDP", to its address; ok is false for other addresses. nil: there are none.
	Endpoint func(protocol string, dst netip.AddrPort) (to netip.AddrPort, ok bool)
}

// Resolver answers DNS queries. Many goroutines may call it at once.
type Resolver interface {
	// Answer returns the answer to a query that came in a datagram, or nil.
	Answer(query []byte) []byte
	// ServeConn serves a connection until its end, and closes it.
	ServeConn(c net.Conn)
}

// Limits of one pod.
const (
	maxFlows = 8192 // TCP connections, UDP sessions and echo requests together
	reserve  = 256  // descriptors that are left to the rest of the process
	perFlow  = 4    // descriptors: two sockets and, while it streams, a pipe
)

// Proxy serves a pod.
type Proxy struct {
	config         Config
	traffic        router.TrafficFDs
	tun            *os.File
	write          func(packet []byte) // replaces the TUN device, if there is none
	router         *nsthread.Thread
	loop           *relay.Loop // carries connections; its thread starts them
	maxFlows       int64       // flows
	firstEphemeral uint16      // first ephemeral port of the host

	// reading is held while something is taken from a traffic descriptor, until it counts as a
	// flow.
	reading sync.RWMutex
	flows   atomic.Int64

	readers sync.WaitGroup
	closing sync.Once
	tcp     tcpConns
	udp     udpSessions
}

// Start starts to serve a pod through its traffic descriptors, which it closes in the end.
func Start(c Config, traffic router.TrafficFDs) (*Proxy, error) {
	thread, err := nsthread.Start(c.RouterNS)
	if err != nil {
		return nil, fmt.Errorf("serve the pod's network: %w", err)
	}
	e := &Proxy{config: c, traffic: traffic, router: thread, maxFlows: descriptorLimit(), firstEphemeral: firstEphemeralPort()}
	e.tcp.all = map[flow]*tcpConn{}
	e.udp.all = map[flow]*udpSession{}
	if err := e.start(); err != nil {
		e.Close()
		return nil, fmt.Errorf("serve the pod's network: %w", err)
	}
	return e, nil
}

// descriptorLimit returns the number of flows that this process has descriptors for.
func descriptorLimit() int64 {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return reserve / perFlow
	}
	return max(16, min(maxFlows, (int64(min(limit.Cur, 1<<20))-reserve)/perFlow))
}

func (e *Proxy) start() (err error) {
	var fds [3]int
	for i, name := range []string{router.TrafficTUN, router.TrafficTCP4, router.TrafficTCP6} {
		fds[i] = -1
		if e.traffic[name] != nil {
			if e.traffic[name], fds[i], err = rawsys.Unpolled(e.traffic[name]); err != nil {
				return err
			}
		}
	}
	e.tun = e.traffic[router.TrafficTUN]
	if e.loop, err = relay.NewLoop(); err != nil {
		return err
	}
	ready := make(chan error, 1)
	e.loop.Post(func() {
		err := e.readTUN(fds[0])
		for _, fd := range fds[1:] {
			if err == nil && fd >= 0 {
				err = e.listen(fd)
			}
		}
		ready <- err
	})
	if err = <-ready; err != nil {
		return err
	}
	for _, name := range []string{router.TrafficUDP4, router.TrafficUDP6} {
		if file := e.traffic[name]; file != nil {
			e.readers.Go(func() { e.readDatagrams(file) })
		}
	}
	return nil
}

// Pause stops accepting traffic, for a process that is about to exit. It succeeds only if no flow
// is active; then Resume continues, or a successor with the same descriptors does.
func (e *Proxy) Pause() bool {
	e.reading.Lock()
	if e.flows.Load() > 0 {
		e.reading.Unlock()
		return false
	}
	return true
}

// Resume ends a Pause.
func (e *Proxy) Resume() { e.reading.Unlock() }

// Close ends all flows. It may be called again.
func (e *Proxy) Close() { e.closing.Do(e.close) }

func (e *Proxy) close() {
	if e.loop != nil {
		e.loop.Close()
	}
	e.traffic.Close()
	e.readers.Wait()
	e.tcp.close()
	e.udp.close()
	e.router.Close()
}

// acquireFlow counts a flow; false if there are too many.
func (e *Proxy) acquireFlow() bool {
	if e.flows.Add(1) > e.maxFlows {
		e.flows.Add(-1)
		return false
	}
	return true
}

func (e *Proxy) releaseFlow() { e.flows.Add(-1) }

// hostTarget returns the destination in the host's network for a packet of a protocol to dst; ok is false
// for destinations that a pod must not or cannot reach.
func (e *Proxy) hostTarget(protocol string, dst netip.AddrPort) (to netip.AddrPort, ok bool) {
	a := dst.Addr().Unmap()
	if e.config.Endpoint != nil {
		if to, ok := e.config.Endpoint(protocol, dst); ok {
			dst, a = to, to.Addr()
		}
	}
	if e.config.HostLoopback {
		switch a {
		case ipam.HostLoopback.V4:
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), dst.Port()), true
		case ipam.HostLoopback.V6:
			return netip.AddrPortFrom(netip.IPv6Loopback(), dst.Port()), true
		}
	}
	return netip.AddrPortFrom(a, dst.Port()), reachable(a)
}

// reachable reports whether a pod may connect to an address: a unicast address, and not this host's
// loopback in any form. The kernel connects 0.0.0.0 and :: to the loopback, and IPv4 addresses in IPv6
// form, translated or compatible, have been used to bypass such a check.
func reachable(a netip.Addr) bool {
	switch {
	case a.IsLoopback(), a.IsUnspecified(), a.IsMulticast(), a == ipam.HostLoopback.V4, a == ipam.HostLoopback.V6:
		return false
	case a.Is4():
		b := a.As4()
		return b[0] != 0 && b[0] < 240
	}
	b := a.As16()
	return !a.IsLinkLocalUnicast() && [12]byte(b[:12]) != [12]byte{}
}
