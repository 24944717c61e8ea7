package nsthread

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Sockets are TCP sockets of the pod's network for probes of its servers. A socket belongs to the
// network in which it was made, whatever thread connects it. So one thread enters the network for
// several sockets and ends, instead of one for each socket, or one that stays.
type Sockets struct {
	Files []string // the network, see NetFiles

	mu    sync.Mutex
	spare map[int][]int // descriptors, by family of addresses
}

// socketBatch is the number of sockets made at a time.
const socketBatch = 8

// control is the Control function of a net.Dialer that connects in the pod's network.
func (s *Sockets) control(network, _ string, c syscall.RawConn) error {
	var err error
	cerr := c.Control(func(fd uintptr) { err = s.replace(int(fd), network) })
	return errors.Join(cerr, err)
}

// replace replaces a socket by one of the pod's network, with options that leave no closed
// connection in TIME_WAIT for a minute (Kubernetes: pkg/probe ProbeDialer).
func (s *Sockets) replace(fd int, network string) error {
	if len(s.Files) > 0 {
		family := unix.AF_INET
		if network == "tcp6" {
			family = unix.AF_INET6
		}
		thread, err := s.take(family)
		if err != nil {
			return fmt.Errorf("make a socket in the pod's network: %w", err)
		}
		err = unix.Dup3(thread, fd, unix.O_CLOEXEC)
		unix.Close(thread)
		if err != nil {
			return fmt.Errorf("take a socket of the pod's network: %w", err)
		}
	}
	return unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 1})
}

func (s *Sockets) take(family int) (fd int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.spare[family]) == 0 {
		if err := Do(func() error { return s.refill(family) }, s.Files...); err != nil {
			return -1, err
		}
	}
	last := len(s.spare[family]) - 1
	fd = s.spare[family][last]
	s.spare[family] = s.spare[family][:last]
	return fd, nil
}

// refill makes some sockets, at least one, on a thread in the pod's network.
func (s *Sockets) refill(family int) error {
	for range socketBatch {
		fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil && len(s.spare[family]) == 0 {
			return err
		}
		if err != nil {
			break
		}
		if s.spare == nil {
			s.spare = map[int][]int{}
		}
		s.spare[family] = append(s.spare[family], fd)
	}
	return nil
}

// Close closes the spare sockets.
func (s *Sockets) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, fds := range s.spare {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}
	s.spare = nil
}

// Dial connects from the pod's network. It resolves names as on the host.
func (s *Sockets) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addresses, err := lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Control: s.control, KeepAlive: -1}
	var conn net.Conn
	for _, a := range addresses {
		conn, err = dialer.DialContext(ctx, network, net.JoinHostPort(a.String(), port))
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	return conn, err
}

func lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	list, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", host, err)
	}
	for i := range list {
		list[i] = list[i].Unmap()
	}
	return list, nil
}
