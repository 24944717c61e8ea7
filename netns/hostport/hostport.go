// Package hostport opens ports of the host for pods that publish ports.
package hostport

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/report"
)

// Port is a port of the host.
type Port struct {
	Protocol string     // tcp or udp
	Addr     netip.Addr // one of the host's; the zero Addr means all, of both families
	Number   int
	Shared   bool // with other pods of the same user, among which the kernel distributes connections
}

// String returns the port as 8080/tcp, 127.0.0.1:8080/tcp or [::1]:53/udp.
func (p Port) String() string {
	number := strconv.Itoa(p.Number)
	if p.Addr.IsValid() {
		number = netip.AddrPortFrom(p.Addr, uint16(p.Number)).String()
	}
	return number + "/" + p.Protocol
}

// backlog is the number of connections that wait while nothing accepts them: a supervisor that
// hibernates or was killed is back in less than a second. The kernel has a limit of its own.
const backlog = 4096

// Bind reserves the port, so that no other process can bind it. Connections to it are refused until
// Listen.
func Bind(p Port) (*os.File, error) {
	fd, err := bind(p)
	if err != nil {
		return nil, bindError(p, err)
	}
	return os.NewFile(uintptr(fd), p.String()), nil
}

// Listen makes a bound port accept connections. A UDP port does not need it.
func Listen(f *os.File, p Port) error {
	if p.Protocol != "tcp" {
		return nil
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	cerr := raw.Control(func(fd uintptr) { err = unix.Listen(int(fd), backlog) })
	if err = errors.Join(err, cerr); err != nil {
		return bindError(p, err)
	}
	return nil
}

// bind makes a socket for all addresses of every family that the host has, or for the requested
// address.
func bind(p Port) (int, error) {
	all := netip.IPv6Unspecified()
	if p.Addr.IsValid() {
		return bindTo(p, p.Addr, true)
	}
	fd, err := bindTo(p, all, false)
	if err == unix.EAFNOSUPPORT || err == unix.EADDRNOTAVAIL {
		return bindTo(p, netip.IPv4Unspecified(), false)
	}
	return fd, err
}

func bindTo(p Port, a netip.Addr, only6 bool) (fd int, err error) {
	kind, family := unix.SOCK_STREAM, unix.AF_INET
	if p.Protocol == "udp" {
		kind = unix.SOCK_DGRAM
	}
	var to unix.Sockaddr = &unix.SockaddrInet4{Port: p.Number, Addr: as4(a)}
	if a.Is6() {
		family, to = unix.AF_INET6, &unix.SockaddrInet6{Port: p.Number, Addr: a.As16()}
	}
	if fd, err = unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return -1, err
	}
	set := func(level, option, value int) {
		if err == nil {
			err = unix.SetsockoptInt(fd, level, option, value)
		}
	}
	if a.Is6() {
		set(unix.SOL_IPV6, unix.IPV6_V6ONLY, boolInt(only6))
	}
	if p.Shared {
		set(unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}
	if kind == unix.SOCK_STREAM { // with UDP it would let other processes bind the port too
		set(unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	} else { // an answer leaves from the address that the request was sent to
		set(unix.SOL_IP, unix.IP_PKTINFO, 1)
		if a.Is6() {
			set(unix.SOL_IPV6, unix.IPV6_RECVPKTINFO, 1)
		}
	}
	if err == nil {
		err = unix.Bind(fd, to)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func as4(a netip.Addr) [4]byte {
	if a.Is4() {
		return a.As4()
	}
	return [4]byte{}
}

func boolInt(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// bindError returns an error that explains why the port cannot be bound and what to do.
func bindError(p Port, err error) error {
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return report.New(report.Failure, "ss -lnp shows which process uses it; choose another hostPort, or a hostIP that is free", "port %s of the host is used by another program: %w", p, err)
	case errors.Is(err, unix.EACCES):
		first := firstUnprivilegedPort()
		return report.New(report.Failure,
			fmt.Sprintf("as root: sysctl -w net.ipv4.ip_unprivileged_port_start=%d, and in a file of /etc/sysctl.d to keep it; or a hostPort from %d on", p.Number, first),
			"port %s of the host is reserved for root, as are all below %d: %w", p, first, err)
	case errors.Is(err, unix.EADDRNOTAVAIL):
		return report.New(report.Failure, "ip address lists its addresses; without hostIP the port is open on all", "port %s of the host: this machine has no address %s: %w", p, p.Addr, err)
	}
	return fmt.Errorf("open port %s of the host: %w", p, err)
}

// firstUnprivilegedPort returns the first port that every user may bind.
func firstUnprivilegedPort() int {
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start")
	if n, nerr := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && nerr == nil {
		return n
	}
	return 1024
}
