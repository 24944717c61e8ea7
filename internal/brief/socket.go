package brief

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Socket is socket(2), for one that does not block.
func Socket(family, kind int) (fd int, err error) {
	n, _, e := unix.RawSyscall(unix.SYS_SOCKET, uintptr(family), uintptr(kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK), 0)
	return result(n, e)
}

// Set is setsockopt(2) of a number.
func Set(fd, level, name, value int) error {
	v := int32(value)
	n, _, e := unix.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name), uintptr(unsafe.Pointer(&v)), unsafe.Sizeof(v), 0)
	_, err := result(n, e)
	return err
}

// Shutdown is shutdown(2).
func Shutdown(fd, how int) error {
	n, _, e := unix.RawSyscall(unix.SYS_SHUTDOWN, uintptr(fd), uintptr(how), 0)
	_, err := result(n, e)
	return err
}

// Bind is bind(2) to an address of the socket's family, in a zone of IPv6 if that is not 0.
func Bind(fd int, at netip.AddrPort, zone uint32) error { return name(unix.SYS_BIND, fd, at, zone) }

// Connect is connect(2).
func Connect(fd int, to netip.AddrPort, zone uint32) error {
	return name(unix.SYS_CONNECT, fd, to, zone)
}

func name(number uintptr, fd int, at netip.AddrPort, zone uint32) error {
	raw := unix.RawSockaddrInet6{Family: unix.AF_INET6, Scope_id: zone}
	size := unsafe.Sizeof(raw)
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&raw.Port))[:], at.Port())
	if at.Addr().Is4() {
		four := (*unix.RawSockaddrInet4)(unsafe.Pointer(&raw))
		four.Family, four.Addr, size = unix.AF_INET, at.Addr().As4(), unsafe.Sizeof(*four)
	} else {
		raw.Addr = at.Addr().As16()
	}
	_, err := call(number, fd, unsafe.Pointer(&raw), size, 0)
	return err
}
