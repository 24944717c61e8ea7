package netns

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Wires are the ends in a process of what carries a pod's traffic to it, by these names.
// They are kernel objects: handed on to another process they lose nothing.
type Wires map[string]*os.File

// Names of wires. There are those of IPv6 only where the kernel has it.
const (
	WireTUN  = "tun"  // packets: first ones of TCP connections, ICMP
	WireTCP4 = "tcp4" // a listening socket
	WireTCP6 = "tcp6"
	WireUDP4 = "udp4" // a socket that tells whom a datagram was for
	WireUDP6 = "udp6"
)

// WireNames are all of them.
var WireNames = []string{WireTUN, WireTCP4, WireTCP6, WireUDP4, WireUDP6, WirePackets}

// Close closes all.
func (w Wires) Close() error {
	var errs []error
	for _, f := range w {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// Wire makes the wires of an attached pod and leads to them what the pod sends that is for
// no other pod. What an earlier try has left is replaced.
func (r Router) Wire(pool Pool, s Slot) (Wires, error) { return r.wire(pool, s, byProcess) }

func (r Router) wire(pool Pool, s Slot, by exit) (Wires, error) {
	w := Wires{}
	err := r.Do(func() error {
		if err := w.make(s, has(pool.V6)); err != nil {
			return err
		}
		if err := direct(pool, s); err != nil {
			return err
		}
		lead := func(by exit) error { return addTable(s, by, families, rules(s, pool, pool.Of(s), by)) }
		err := lead(by)
		if by == byKernel && errors.Is(err, unix.ENOENT) {
			err = lead(byPlainKernel)
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("carry the pod's traffic: %w", err), w.Close())
	}
	return w, nil
}

func (w Wires) make(s Slot, six bool) error {
	tun, err := openTUN(s, 0)
	if err != nil {
		return err
	}
	w[WireTUN] = tun
	for _, name := range []string{WireTCP4, WireUDP4, WireTCP6, WireUDP6} {
		f := v4
		if name == WireTCP6 || name == WireUDP6 {
			f = v6
		}
		if f.size == v6.size && !six {
			continue
		}
		kind := unix.SOCK_STREAM
		if name == WireUDP4 || name == WireUDP6 {
			kind = unix.SOCK_DGRAM
		}
		fd, err := f.socket(kind, netip.AddrPortFrom(f.loopback, port(s)))
		if err != nil {
			return fmt.Errorf("listen for the pod's %s: %w", name, err)
		}
		w[name] = os.NewFile(uintptr(fd), name)
	}
	return nil
}

// openTUN makes a pod's TUN device.
func openTUN(s Slot, flags uint16) (*os.File, error) {
	name := tunLink(s)
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | flags)
		err = unix.IoctlSetPointerInt(fd, unix.TUNSETIFINDEX, firstTUN+int(s))
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

// backlog is how many connections wait while nobody takes them: a supervisor that dozes or
// has died is back in less than a second.
const backlog = 4096

// socket makes one that takes what is for any address.
func (f ipFamily) socket(kind int, at netip.AddrPort) (int, error) {
	domain, level, transparent, original := unix.AF_INET, unix.SOL_IP, unix.IP_TRANSPARENT, unix.IP_RECVORIGDSTADDR
	if f.size == v6.size {
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
		err = unix.Bind(fd, SockAddr(at))
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

// SockAddr is an address in the form of system calls.
func SockAddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}
	}
	return &unix.SockaddrInet6{Addr: a.Addr().As16(), Port: int(a.Port())}
}

// direct leads what a pod sends to its TUN device.
func direct(pool Pool, s Slot) error {
	// The process there speaks for the router too.
	if err := sysctl("net/ipv4/conf/"+tunLink(s)+"/accept_local", "1"); err != nil {
		return err
	}
	var b batch
	b.bringUp(firstTUN+int(s), tunLink(s), attribute(unix.IFLA_MTU, nl.Uint32Attr(MTU)))
	for _, p := range []netip.Prefix{pool.V4, pool.V6} {
		if !has(p) {
			continue
		}
		b.route("add route to "+tunLink(s), way{to: everything(p.Addr()), link: firstTUN + int(s), table: firstTable + int(s)})
		b.rule("add rule to "+tunLink(s), familyOf(p.Addr()), firstTable+int(s), egressPref, attribute(nl.FRA_IIFNAME, nl.ZeroTerminated(podLink(s))))
	}
	return b.send()
}
