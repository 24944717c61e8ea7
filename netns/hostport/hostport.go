// Package hostport opens ports of the host, for pods that publish theirs there.
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

// Port is a port of the machine.
type Port struct {
	Protocol string     // tcp or udp
	Addr     netip.Addr // one of the machine's; the zero Addr for all, of both families
	Number   int
	Shared   bool // with others of the same user: each gets some of the connections
}

// String is as 8080/tcp, 127.0.0.1:8080/tcp or [::1]:53/udp.
func (p Port) String() string {
	number := strconv.Itoa(p.Number)
	if p.Addr.IsValid() {
		number = netip.AddrPortFrom(p.Addr, uint16(p.Number)).String()
	}
	return number + "/" + p.Protocol
}

// backlog is how many connections wait while nobody takes them: a supervisor that dozes
// or has died is back in less than a second. The kernel has a bound of its own.
const backlog = 4096

// Bind makes the port the caller's, so that nobody else gets it. Connections to it are
// refused until Listen.
func Bind(p Port) (*os.File, error) {
	fd, err := bind(p)
	if err != nil {
		return nil, bindError(p, err)
	}
	return os.NewFile(uintptr(fd), p.String()), nil
}

// Listen lets connections come. A port of UDP needs none.
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

// bind makes a socket for every address of both families where the machine has them, or
// for the one that is asked for.
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
	if kind == unix.SOCK_STREAM { // with UDP it would let others have the port too
		set(unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	} else { // an answer leaves from the address that was asked
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

// bindError says why the port cannot be had, and what to do.
func bindError(p Port, err error) error {
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return report.New(report.Failure, "ss -lnp shows by which; choose another hostPort, or a hostIP that is free", "port %s of the host is taken by another program: %w", p, err)
	case errors.Is(err, unix.EACCES):
		first := firstUnprivilegedPort()
		return report.New(report.Failure,
			fmt.Sprintf("as root: sysctl -w net.ipv4.ip_unprivileged_port_start=%d, and in a file of /etc/sysctl.d to keep it; or a hostPort from %d on", p.Number, first),
			"port %s of the host is root's, as all below %d: %w", p, first, err)
	case errors.Is(err, unix.EADDRNOTAVAIL):
		return report.New(report.Failure, "ip address lists those that it has; without hostIP the port is open on all", "port %s of the host: this machine has no address %s: %w", p, p.Addr, err)
	}
	return fmt.Errorf("open port %s of the host: %w", p, err)
}

// firstUnprivilegedPort is the first port that every user may open.
func firstUnprivilegedPort() int {
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start")
	if n, nerr := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && nerr == nil {
		return n
	}
	return 1024
}
