package ingress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/netns/relay"
)

// Inside is a Dialer that connects on a thread inside a network that knows the pod.
type Inside struct {
	Thread *nsthread.Thread

	// Addrs are the pod's, of which a client's connection goes to that of its own
	// family, or to the first.
	Addrs []netip.Addr

	// Transparent says that answers to any address come back to this network: then a
	// client is shown with its own, unless that means something else here.
	Transparent bool

	// Ours are the networks whose addresses mean something else here: those of pods.
	Ours []netip.Prefix
}

// connectTime is how long the pod may take to answer: it is on this machine.
const connectTime = 10 * time.Second

// target is the pod's address for a client, and whether it may see the client's.
func (d *Inside) target(client netip.Addr) (to netip.Addr, shown bool) {
	if len(d.Addrs) == 0 {
		return netip.Addr{}, false
	}
	to = d.Addrs[0]
	for _, a := range d.Addrs {
		if a.Is4() == client.Is4() {
			to = a
			break
		}
	}
	shown = d.Transparent && to.Is4() == client.Is4() && client.IsGlobalUnicast()
	for _, p := range d.Ours {
		shown = shown && !p.Contains(client)
	}
	return to, shown
}

// Carry connects to a port of the pod for a client. Where the client's own port is in use
// there, it is shown with another.
func (d *Inside) Carry(_ context.Context, client *net.TCPConn, from netip.AddrPort, port int) {
	conn, err := d.dial(unix.SOCK_STREAM, from, port)
	if err != nil {
		relay.Reset(client)
		return
	}
	relay.Join(client, conn.(*net.TCPConn))
}

// DialUDP is the same for datagrams.
func (d *Inside) DialUDP(client netip.AddrPort, port int) (net.Conn, error) {
	return d.dial(unix.SOCK_DGRAM, client, port)
}

func (d *Inside) dial(kind int, client netip.AddrPort, port int) (net.Conn, error) {
	addr, shown := d.target(client.Addr())
	if !addr.IsValid() {
		return nil, errors.New("connect to the pod: it has no address")
	}
	to := netip.AddrPortFrom(addr, uint16(port))
	sources := []netip.AddrPort{{}}
	if shown {
		sources = []netip.AddrPort{client, netip.AddrPortFrom(client.Addr(), 0)}
	}
	var fd int
	var err error
	for _, from := range sources {
		err = d.Thread.Do(func() (err error) {
			fd, err = socket(kind, d.Transparent, from, to)
			return err
		})
		if err != unix.EADDRINUSE && err != unix.EADDRNOTAVAIL {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", to, err)
	}
	return finish(fd, to)
}

// socket begins to connect.
func socket(kind int, transparent bool, from, to netip.AddrPort) (fd int, err error) {
	family, level, option := unix.AF_INET, unix.SOL_IP, unix.IP_TRANSPARENT
	if to.Addr().Is6() {
		family, level, option = unix.AF_INET6, unix.SOL_IPV6, unix.IPV6_TRANSPARENT
	}
	if fd, err = unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return -1, err
	}
	set := func(level, option int) {
		if err == nil {
			err = unix.SetsockoptInt(fd, level, option, 1)
		}
	}
	if kind == unix.SOCK_STREAM {
		set(unix.SOL_TCP, unix.TCP_NODELAY)
	}
	if transparent { // the router's rules know such sockets
		set(level, option)
	}
	if from.IsValid() {
		set(unix.SOL_SOCKET, unix.SO_REUSEADDR)
		if err == nil {
			err = unix.Bind(fd, sockaddr(from))
		}
	}
	if err == nil {
		err = unix.Connect(fd, sockaddr(to))
	}
	if err != nil && err != unix.EINPROGRESS {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// finish waits until a socket is connected.
func finish(fd int, to netip.AddrPort) (net.Conn, error) {
	f := os.NewFile(uintptr(fd), to.String())
	defer f.Close()
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	if err := f.SetWriteDeadline(time.Now().Add(connectTime)); err != nil {
		return nil, err
	}
	werr := raw.Write(func(fd uintptr) bool {
		var done bool
		done, err = connected(int(fd))
		return done
	})
	if err = errors.Join(werr, err); err != nil {
		return nil, fmt.Errorf("connect to %s: %w", to, err)
	}
	return net.FileConn(f)
}

func connected(fd int) (bool, error) {
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && n != 0 {
		err = syscall.Errno(n)
	}
	if err != nil {
		return true, err
	}
	_, err = unix.Getpeername(fd)
	return err == nil, nil
}
