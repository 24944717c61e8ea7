package network

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/netns"
	"github.com/podrun/podrun/netns/dns"
	"github.com/podrun/podrun/netns/egress"
	"github.com/podrun/podrun/netns/ipam"
	"github.com/podrun/podrun/netns/netstack/stackclient"
	"github.com/podrun/podrun/netns/netstack/stackproto"
	"github.com/podrun/podrun/netns/router"
)

// Network is a pod's network: the router connects the pod to the user's other pods, and to the world. The zero
// Network belongs to a pod with only a loopback device.
type Network struct {
	plan       *pod.Plan
	store      store.Pod
	netns      string          // the path of the pod's network namespace; "" for the host's
	podInit    *podinit.Client // nil in a test
	Ports      *HostPorts
	CgroupDone <-chan struct{}   // closed when the pod has its cgroup, or the cgroup has failed
	Warn       func(text string) // adds a warning to the pod's status

	Pool   ipam.Pool
	Slot   ipam.Slot
	Egress egressServer // nil without egress

	stack *stackclient.Client          // the Egress, if it is a user-space stack
	proxy atomic.Pointer[egress.Proxy] // the Egress, if it is a proxy; it stays after Disconnect

	Masquerades     bool   // IPv4 traffic leaves through the kernel and does not reach Egress
	MasqueradeError string // why masquerading failed; "" if it was not tried

	host     bool     // the pod uses the host's network
	Warnings []string // of its creation

	names     *dns.Resolver // nil without a DNS server
	resolver  netip.Addr    // of the DNS server
	services  serviceView
	publisher endpointPublisher
}

// New returns the network of a pod that is not set up yet. netns is the path of its namespace.
func New(plan *pod.Plan, p store.Pod, netns string, podInit *podinit.Client, ports *HostPorts) Network {
	return Network{plan: plan, store: p, netns: netns, podInit: podInit, Ports: ports, host: plan.Network == pod.NetworkHost}
}

// egressServer forwards what the pod sends to addresses outside the router.
type egressServer interface {
	Pause() bool // for a process that is about to exit; false if connections are open
	Resume()
	Close()
}

// Addresses returns the pod's own addresses, or the machine's if it uses the host's network; none without a
// network.
func (n *Network) Addresses() []netip.Addr {
	if n.host {
		var list []netip.Addr
		for _, text := range n.HostIPs() {
			if a, err := netip.ParseAddr(text); err == nil {
				list = append(list, a)
			}
		}
		return list
	}
	if n.Slot == 0 {
		return nil
	}
	return router.UsableAddresses(n.Pool, n.Slot)
}

// Connect makes the pod's network, if the Plan has one.
func (n *Network) Connect() error {
	if n.netns == "" {
		return nil
	}
	if err := netns.LoopbackUp(n.netns); err != nil {
		return fmt.Errorf("set up the pod's network: %w", err)
	}
	if err := netns.AllowUnprivileged(n.netns); err != nil { // the manifest's sysctls may override it later
		n.Warnings = append(n.Warnings, fmt.Sprintf("containers that are not root cannot listen on ports below 1024, or use ping: %v", err))
	}
	mode := n.plan.Network
	switch {
	case n.router() == "" || mode == pod.NetworkNone:
		return nil
	case mode == pod.NetworkNetstack:
		<-n.CgroupDone // a process of the network would be an obstacle while the pod gets its cgroup
		return n.attach(mode)
	}
	err := n.attach(mode)
	if err == nil {
		return nil
	}
	if mode != pod.NetworkAuto {
		return errors.Join(err, n.dropMasquerade())
	}
	<-n.CgroupDone
	if derr := n.Disconnect(); derr != nil {
		fmt.Fprintln(os.Stderr, derr)
	}
	if n.attach(pod.NetworkNetstack) == nil {
		n.Warnings = append(n.Warnings, fmt.Sprintf("the pod's network is a user-space stack, which uses more CPU: %v (%s)", err, report.Hint(router.WithHint(err))))
		return nil
	}
	n.Warnings = append(n.Warnings, fmt.Sprintf("the pod has only a loopback network: %v (%s)", err, report.Hint(router.WithHint(err))))
	return n.Disconnect()
}

// router returns the path of the router's network namespace; "" in a test without pod init.
func (n *Network) router() string {
	if n.podInit == nil {
		return ""
	}
	return podinit.RouterNS()
}

// attach connects the pod to the router and starts its traffic. Pod init holds the traffic descriptors
// before the pod can send anything.
func (n *Network) attach(mode pod.NetworkMode) error {
	if err := n.store.RemoveEndpoint(); err != nil { // an earlier sandbox's
		return err
	}
	fds, err := n.lease(mode)
	if err != nil {
		return err
	}
	for name, f := range fds {
		if err := n.podInit.Watch(protocol.KeptTraffic+name, f); err != nil {
			return errors.Join(err, fds.Close())
		}
	}
	if err := n.serveTraffic(fds); err != nil {
		return err
	}
	n.publisher.set(n.currentEndpoint(n.plan, false))
	if err := n.enforceFirst(); err != nil {
		return err
	}
	publish := func() {
		if err := n.PublishEndpoint(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if n.plan.ReachesCluster() && n.store.HadServices() { // until then the router refuses the pod's connections to them
		publish()
	} else { // before the first query, concurrently with the rest
		go publish()
	}
	slot := n.Slot
	time.AfterFunc(staleDelay, func() { n.removeStale(slot) })
	return nil
}

// staleDelay is the delay before stale objects in the router are removed: the removal would slow down the start
// of pods, and after the delay most pods run. If a supervisor ends earlier, another supervisor removes the objects.
const staleDelay = time.Second

// removeStale removes what is left of deleted pods in the router. It takes long, so neither the end of a pod nor
// the start of another one waits for it, and of pods that start together one does it.
func (n *Network) removeStale(current ipam.Slot) {
	wait, err := n.store.BeginSweep(staleDelay)
	if wait > 0 {
		time.AfterFunc(wait, func() { n.removeStale(current) })
		return
	}
	if err == nil {
		err = n.withLock(func() error {
			others, err := n.otherSlots()
			if err != nil {
				return err
			}
			taken := map[ipam.Slot]bool{current: true}
			for slot, leases := range others {
				taken[slot] = taken[slot] || slices.ContainsFunc(leases, store.OtherLease.Alive)
			}
			return router.Open(n.router()).Sweep(taken)
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "remove stale network state:", err)
	}
}

// withLock calls f under the lock of the router.
func (n *Network) withLock(f func() error) error {
	lock, err := n.store.LockSharedResources()
	if err != nil {
		return err
	}
	defer lock.Close()
	return f()
}

// otherSlots returns the leases of other pods by their slots. The caller holds the lock.
func (n *Network) otherSlots() (map[ipam.Slot][]store.OtherLease, error) {
	others, err := n.store.OtherLeases()
	bySlot := map[ipam.Slot][]store.OtherLease{}
	for _, l := range others {
		bySlot[ipam.Slot(l.Slot)] = append(bySlot[ipam.Slot(l.Slot)], l)
	}
	return bySlot, err
}

// lease gets the pod's slot in the router: its previous one, or a free one.
func (n *Network) lease(mode pod.NetworkMode) (fds router.TrafficFDs, err error) {
	err = n.withLock(func() error {
		inside, err := router.Open(n.router()).Enter()
		if err != nil {
			return err
		}
		defer inside.Leave()
		pool, err := n.preparePool(inside)
		if err != nil {
			return err
		}
		want := ipam.PreferredSlot(n.store.Namespace + "/" + n.store.Name)
		if had, err := n.store.Lease(); err == nil {
			want = ipam.Slot(had.Slot)
		}
		others, err := n.otherSlots()
		if err != nil {
			return err
		}
		slot, err := pool.FreeSlot(want, func(s ipam.Slot) bool { return slices.ContainsFunc(others[s], store.OtherLease.Alive) })
		if err != nil {
			return err
		}
		n.Pool, n.Slot = pool, slot
		mtu, err := n.setUpMasquerade(mode, inside)
		if err == nil {
			err = n.writeLease(n.Masquerades)
		}
		if err != nil {
			return err
		}
		if err := inside.Attach(n.netns, pool, slot); err != nil {
			return err
		}
		switch {
		case mode == pod.NetworkNetstack:
			fds, err = inside.OpenPackets(pool, slot)
		case n.Masquerades:
			fds, err = inside.OpenMasqueraded(n.netns, pool, slot, mtu)
		default:
			fds, err = inside.OpenTraffic(pool, slot)
		}
		return err
	})
	return fds, err
}

// serveTraffic starts to forward the pod's traffic.
func (n *Network) serveTraffic(fds router.TrafficFDs) (err error) {
	n.resolver = n.Pool.Gateway().V4
	if fds[router.TrafficPackets] != nil {
		n.resolver = stackproto.ResolverAddr
	}
	n.names = dns.New(n.view, dns.HostResolvConf, n.plan.DNSServers...)
	c := egress.Config{RouterNS: n.router(), Pool: n.Pool, Slot: n.Slot, HostLoopback: n.plan.HostLoopback, Names: n.names, Endpoint: n.outsideEndpoint}
	if fds[router.TrafficPackets] != nil {
		stack, err := stackclient.Start(podinit.NetstackProgram(), c, fds)
		if err == nil {
			n.Egress, n.stack = stack, stack
		}
		return err
	}
	served, err := egress.Start(c, fds)
	if err == nil {
		n.Egress = served
		n.proxy.Store(served)
	}
	return err
}

// Disconnect undoes Connect, even one that was completed only in part. The kernel deletes the pod's device with
// the network namespace. What remains in the router is used by the pod's next sandbox, or removed by another
// pod's supervisor.
func (n *Network) Disconnect() error {
	if n.Egress != nil {
		n.Egress.Close()
		n.Egress, n.stack = nil, nil
	}
	if n.router() != "" {
		for _, name := range router.TrafficNames {
			n.podInit.Drop(protocol.KeptTraffic + name)
		}
	}
	err := n.dropMasquerade()
	n.Slot, n.Masquerades = 0, false
	return err
}

// SuspendIfIdle stops reading what the pod sends, unless a connection is open, and reports whether it did: then
// the supervisor may hibernate. If it returns false, it has changed nothing. If it returns true and the
// supervisor does not exit after all, the caller calls Continue.
func (n *Network) SuspendIfIdle() bool { return n.Egress == nil || n.Egress.Pause() }

// Continue undoes SuspendIfIdle.
func (n *Network) Continue() {
	if n.Egress != nil {
		n.Egress.Resume()
	}
}

// FallbackIP is the address of a pod without a network in its /etc/hosts. A server that listens on
// localhost only is not reached there, just as the kubelet does not reach such a server in a container.
const FallbackIP = "127.0.1.1"

// AddrStrings returns addresses in their text form.
func AddrStrings(addresses []netip.Addr) []string {
	var list []string
	for _, a := range addresses {
		list = append(list, a.String())
	}
	return list
}

// HostIPs returns the address of the node whose pods are routed; of other machines the source addresses by the current
// routes, or the loopback address without a default route.
func (n *Network) HostIPs() []string {
	if is, err := n.store.PodNetwork(); err == nil && is.Node.IsValid() {
		return []string{is.Node.String()}
	}
	var list []string
	for _, to := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} {
		if a, err := sourceAddress(netip.MustParseAddrPort(to)); err == nil {
			list = append(list, a.String())
		}
	}
	if len(list) == 0 {
		return []string{"127.0.0.1"}
	}
	return list
}

// sourceAddress returns the address from which the machine sends to another. Nothing is sent: connecting a datagram
// socket only looks up the route. net.Dial takes a millisecond for that, because it first finds out what the kernel's
// sockets can do.
func sourceAddress(to netip.AddrPort) (netip.Addr, error) {
	family := unix.AF_INET
	if to.Addr().Is6() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return netip.Addr{}, err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, rawsys.Sockaddr(to)); err != nil {
		return netip.Addr{}, err
	}
	from, err := unix.Getsockname(fd)
	switch from := from.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrFrom4(from.Addr), nil
	case *unix.SockaddrInet6:
		return netip.AddrFrom16(from.Addr), nil
	}
	return netip.Addr{}, err
}

// Mode returns how the pod's traffic leaves, after it has been set up.
func (n *Network) Mode() pod.NetworkMode {
	switch {
	case n.host:
		return pod.NetworkHost
	case n.stack != nil:
		return pod.NetworkNetstack
	case n.Masquerades:
		return pod.NetworkMasquerade
	case n.Egress != nil:
		return pod.NetworkTProxy
	}
	return pod.NetworkNone
}
