// Package netstack forwards a pod's traffic where the kernel lacks nftables with TPROXY, which
// package egress needs: a network stack in this process (gVisor's) speaks TCP and UDP with the pod
// over a TUN device. It takes two to three times the processor time. It runs in a process of its
// own, which package stackclient starts.
package netstack

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"github.com/podrun/podrun/netns/egress"
	"github.com/podrun/podrun/netns/router"
)

// nicID is the number of the stack's only interface.
const nicID = 1

// maxWindow limits the data in flight of a connection: its ends are microseconds apart, and memory
// is limited.
const maxWindow = 1 << 20

// maxFlows limits connections and UDP sessions together.
const maxFlows = 2048

// Stack serves a pod.
type Stack struct {
	config  egress.Config
	policy  *egress.Rules
	traffic router.TrafficFDs
	link    *link
	stack   *stack.Stack

	flows   atomic.Int64
	running sync.WaitGroup
	mu      sync.Mutex
	all     map[closer]bool // ends of flows
	closed  bool
}

type closer interface{ Close() error }

// serveStack starts to serve a pod through its traffic descriptors, which it closes in the end.
func serveStack(c egress.Config, traffic router.TrafficFDs) (*Stack, error) {
	s := &Stack{config: c, traffic: traffic, all: map[closer]bool{}}
	s.link = &link{tun: traffic[router.TrafficPackets], mtu: router.MTU, intercept: s.intercept}
	s.policy = egress.NewRules(c, s.link.inject)
	s.stack = stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol},
	})
	if err := s.start(); err != nil {
		s.Close()
		return nil, fmt.Errorf("serve the pod's network in user space: %w", err)
	}
	return s, nil
}

func (s *Stack) start() error {
	receive := tcpip.TCPReceiveBufferSizeRangeOption{Min: 4096, Default: 256 << 10, Max: maxWindow}
	send := tcpip.TCPSendBufferSizeRangeOption{Min: 4096, Default: 256 << 10, Max: maxWindow}
	sack, moderate := tcpip.TCPSACKEnabled(true), tcpip.TCPModerateReceiveBufferOption(true)
	for _, option := range []tcpip.SettableTransportProtocolOption{&receive, &send, &sack, &moderate} {
		if err := s.stack.SetTransportProtocolOption(tcp.ProtocolNumber, option); err != nil {
			return errors.New(err.String())
		}
	}
	// The stack accepts packets to any address and answers with that address.
	for _, err := range []tcpip.Error{
		s.stack.CreateNIC(nicID, s.link), s.stack.SetSpoofing(nicID, true), s.stack.SetPromiscuousMode(nicID, true),
	} {
		if err != nil {
			return errors.New(err.String())
		}
	}
	s.stack.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nicID}, {Destination: header.IPv6EmptySubnet, NIC: nicID}})
	s.stack.SetTransportProtocolHandler(tcp.ProtocolNumber, tcp.NewForwarder(s.stack, 0, maxFlows, s.handleTCP).HandlePacket)
	s.stack.SetTransportProtocolHandler(udp.ProtocolNumber, udp.NewForwarder(s.stack, s.handleUDP).HandlePacket)
	return nil
}

// intercept answers echo requests and drops packets that do not have the pod's own address.
func (s *Stack) intercept(b []byte) bool {
	addresses := s.config.Pool.Addresses(s.config.Slot)
	src, ok := source(b)
	return !ok || src != addresses.V4 && src != addresses.V6 || s.policy.Echo(b)
}

func source(b []byte) (netip.Addr, bool) {
	switch {
	case len(b) >= 20 && b[0]>>4 == 4:
		return netip.AddrFrom4([4]byte(b[12:16])), true
	case len(b) >= 40 && b[0]>>4 == 6:
		return netip.AddrFrom16([16]byte(b[8:24])), true
	}
	return netip.Addr{}, false
}

// Pause stops accepting traffic, for a process that is about to exit. It succeeds only if no flow
// is active.
func (s *Stack) Pause() bool {
	s.link.reading.Lock()
	if s.flows.Load() > 0 || !s.policy.Idle() {
		s.link.reading.Unlock()
		return false
	}
	return true
}

// Resume ends a Pause.
func (s *Stack) Resume() { s.link.reading.Unlock() }

// Close ends all flows.
func (s *Stack) Close() {
	s.mu.Lock()
	s.closed = true
	for c := range s.all {
		c.Close()
	}
	s.mu.Unlock()
	s.traffic.Close()
	s.running.Wait()
	s.policy.Close()
	s.stack.Destroy()
}

// acquire registers a flow with its ends; false if there are too many or the stack is closed.
func (s *Stack) acquire(ends ...closer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.flows.Load() >= maxFlows {
		return false
	}
	s.flows.Add(1)
	for _, c := range ends {
		s.all[c] = true
	}
	return true
}

func (s *Stack) release(ends ...closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flows.Add(-1)
	for _, c := range ends {
		delete(s.all, c)
	}
}

// addrPort converts an address of the stack.
func addrPort(a tcpip.Address, port uint16) netip.AddrPort {
	ip, _ := netip.AddrFromSlice(a.AsSlice())
	return netip.AddrPortFrom(ip, port)
}

// fullAddress converts an address to the stack's form.
func fullAddress(a netip.AddrPort) tcpip.FullAddress {
	return tcpip.FullAddress{NIC: nicID, Addr: tcpip.AddrFromSlice(a.Addr().AsSlice()), Port: a.Port()}
}

func protocolOf(a netip.Addr) tcpip.NetworkProtocolNumber {
	if a.Is4() {
		return ipv4.ProtocolNumber
	}
	return ipv6.ProtocolNumber
}
