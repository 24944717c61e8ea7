package router

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nft"
	"github.com/podrun/podrun/internal/nlbatch"
	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/netns/ipam"
)

// TrafficFDs are the descriptors through which a process handles a pod's traffic, by the names
// below. They are kernel objects: passing them to another process loses nothing.
type TrafficFDs map[string]*os.File

// Names of TrafficFDs. The names of IPv6 exist only where the kernel supports it.
const (
	TrafficTUN  = "tun"  // packets: the first ones of TCP connections, ICMP
	TrafficTCP4 = "tcp4" // a listening socket
	TrafficTCP6 = "tcp6"
	TrafficUDP4 = "udp4" // a socket that reports the destination of each datagram
	TrafficUDP6 = "udp6"
)

// TrafficNames are all names.
var TrafficNames = []string{TrafficTUN, TrafficTCP4, TrafficTCP6, TrafficUDP4, TrafficUDP6, TrafficPackets}

// Close closes all descriptors.
func (w TrafficFDs) Close() error {
	var errs []error
	for _, f := range w {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// OpenTraffic makes the descriptors of an attached pod and directs to them what the pod sends to
// destinations other than pods. It replaces what an earlier attempt has left.
func (r Router) OpenTraffic(pool ipam.Pool, s ipam.Slot) (TrafficFDs, error) {
	return r.openTraffic(pool, s, viaProcess)
}

func (r Router) openTraffic(pool ipam.Pool, s ipam.Slot, by egressMode) (TrafficFDs, error) {
	w := TrafficFDs{}
	err := r.Do(func() error {
		if err := w.open(s, supported(pool.V6)); err != nil {
			return err
		}
		if err := routeToTUN(pool, s); err != nil {
			return err
		}
		lead := func(by egressMode) error {
			return createTable(s, by, nft.Families, podRules(s, pool, pool.Addresses(s), by))
		}
		err := lead(by)
		if by == viaMasquerade && errors.Is(err, unix.ENOENT) {
			err = lead(viaMasqueradeNoSocket)
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("forward the pod's traffic: %w", err), w.Close())
	}
	return w, nil
}

func (w TrafficFDs) open(s ipam.Slot, six bool) error {
	tun, err := openTUN(s, 0)
	if err != nil {
		return err
	}
	w[TrafficTUN] = tun
	for _, name := range []string{TrafficTCP4, TrafficUDP4, TrafficTCP6, TrafficUDP6} {
		f := nft.IPv4
		if name == TrafficTCP6 || name == TrafficUDP6 {
			f = nft.IPv6
		}
		if f.AddrSize == nft.IPv6.AddrSize && !six {
			continue
		}
		kind := unix.SOCK_STREAM
		if name == TrafficUDP4 || name == TrafficUDP6 {
			kind = unix.SOCK_DGRAM
		}
		fd, err := transparentSocket(f, kind, netip.AddrPortFrom(f.Loopback, port(s)))
		if err != nil {
			return fmt.Errorf("listen for the pod's %s: %w", name, err)
		}
		w[name] = os.NewFile(uintptr(fd), name)
	}
	return nil
}

// openTUN makes a pod's TUN device.
func openTUN(s ipam.Slot, flags uint16) (*os.File, error) {
	return makeTUN(tunLink(s), tunIndexBase+int(s), flags)
}

// makeTUN makes a TUN device.
func makeTUN(name string, index int, flags uint16) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | flags)
		err = unix.IoctlSetPointerInt(fd, unix.TUNSETIFINDEX, index)
	}
	if err == nil {
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("make the TUN device %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// backlog is the number of connections that wait while nothing accepts them: a supervisor that
// hibernates or was killed is back in less than a second.
const backlog = 4096

// transparentSocket makes a socket that accepts traffic for any address.
func transparentSocket(f nft.Family, kind int, address netip.AddrPort) (int, error) {
	domain, level, transparent, original := unix.AF_INET, unix.SOL_IP, unix.IP_TRANSPARENT, unix.IP_RECVORIGDSTADDR
	if f.AddrSize == nft.IPv6.AddrSize {
		domain, level, transparent, original = unix.AF_INET6, unix.SOL_IPV6, unix.IPV6_TRANSPARENT, unix.IPV6_RECVORIGDSTADDR
	}
	fd, err := unix.Socket(domain, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	err = unix.SetsockoptInt(fd, level, transparent, 1)
	if err == nil && domain == unix.AF_INET6 {
		err = unix.SetsockoptInt(fd, level, unix.IPV6_V6ONLY, 1)
	}
	if err == nil && kind == unix.SOCK_STREAM {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	if err == nil && kind == unix.SOCK_DGRAM {
		err = unix.SetsockoptInt(fd, level, original, 1)
	}
	if err == nil {
		err = unix.Bind(fd, rawsys.Sockaddr(address))
	}
	if err == nil && kind == unix.SOCK_STREAM {
		err = unix.Listen(fd, backlog)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// routeToTUN routes what a pod sends to its TUN device.
func routeToTUN(pool ipam.Pool, s ipam.Slot) error {
	// The process at the TUN device also sends packets from the router's own addresses.
	if err := procfs.WriteSysctl("net/ipv4/conf/"+tunLink(s)+"/accept_local", "1"); err != nil {
		return err
	}
	var b nlbatch.Batch
	b.SetUp(tunIndexBase+int(s), tunLink(s), nlbatch.Attr(unix.IFLA_MTU, nl.Uint32Attr(MTU)))
	for _, p := range []netip.Prefix{pool.V4, pool.V6} {
		if !supported(p) {
			continue
		}
		b.AddRoute("add route to "+tunLink(s), nlbatch.Route{Dst: anyPrefix(p.Addr()), Link: tunIndexBase + int(s), Table: tableBase + int(s)})
		family := nlbatch.Family(p.Addr())
		b.AddRule("add rule to "+tunLink(s), family, tableBase+int(s), egressPref, nlbatch.Attr(nl.FRA_IIFNAME, nl.ZeroTerminated(podLink(s))))
		// Here and not in prepare, because a router of an earlier podrun lacks the rule.
		b.AddGoto("add rule for proxied Services", family, proxyPref, egressPref, nlbatch.Attr(nl.FRA_FWMARK, nl.Uint32Attr(nft.ProxyMark)))
	}
	return b.Send()
}
