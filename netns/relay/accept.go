package relay

import (
	"net/netip"
	"syscall"
)

// Accept takes a connection, which does not block, from a listening socket that does not
// either, and says whose it is. Go's scheduler is told, as others have the socket too, who may
// have it block after all. The functions of x/sys ask the kernel for each address whose kind of
// socket it is.
func Accept(listener int) (fd int, from netip.AddrPort, err error) {
	fd, sa, err := syscall.Accept4(listener, syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
	if err != nil {
		return -1, from, err
	}
	return fd, addrPort(sa), nil
}

// LocalAddr is a socket's own address.
func LocalAddr(fd int) (netip.AddrPort, error) {
	sa, err := syscall.Getsockname(fd)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return addrPort(sa), nil
}

// addrPort is an address of IPv4 even if IPv6's socket says it.
func addrPort(a syscall.Sockaddr) netip.AddrPort {
	switch a := a.(type) {
	case *syscall.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *syscall.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port))
	}
	return netip.AddrPort{}
}
