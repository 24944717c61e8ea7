package relay

import (
	"net/netip"
	"syscall"
)

// Accept accepts a connection from a listening socket and returns its peer. Neither socket blocks.
// It uses a system call that Go's scheduler observes, because other processes share the listening
// socket and may make it blocking. The functions of x/sys query the socket's kind from the kernel
// for each address.
func Accept(listener int) (fd int, from netip.AddrPort, err error) {
	fd, sa, err := syscall.Accept4(listener, syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
	if err != nil {
		return -1, from, err
	}
	return fd, addrPort(sa), nil
}

// LocalAddr returns a socket's own address.
func LocalAddr(fd int) (netip.AddrPort, error) {
	sa, err := syscall.Getsockname(fd)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return addrPort(sa), nil
}

// addrPort returns an IPv4 address even if an IPv6 socket reports it as mapped.
func addrPort(a syscall.Sockaddr) netip.AddrPort {
	switch a := a.(type) {
	case *syscall.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *syscall.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port))
	}
	return netip.AddrPort{}
}
