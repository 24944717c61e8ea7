// Package rawsys makes non-blocking system calls without Go's scheduler.
//
// For ordinary system calls sysmon retakes the P after 20 µs, which sending a packet to this
// machine can take. The caller then continues on another thread, which has to be woken. Raw calls
// keep the P. A descriptor that may block must not be used here, nor one that another process
// shares and may make blocking: it could stop all Go code of this process.
package rawsys

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// result converts the result of a system call: a number, or -1 and an error.
func result(n uintptr, e unix.Errno) (int, error) {
	if e != 0 {
		return -1, e
	}
	return int(n), nil
}

// call makes a system call with a descriptor and a pointer.
func call(number uintptr, fd int, p unsafe.Pointer, c, d uintptr) (int, error) {
	n, _, e := unix.RawSyscall6(number, uintptr(fd), uintptr(p), c, d, 0, 0)
	return result(n, e)
}

// Read is read(2).
func Read(fd int, b []byte) (int, error) {
	return call(unix.SYS_READ, fd, unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)), 0)
}

// Write is write(2).
func Write(fd int, b []byte) (int, error) {
	return call(unix.SYS_WRITE, fd, unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)), 0)
}

// Send is send(2).
func Send(fd int, b []byte, flags int) (int, error) {
	return call(unix.SYS_SENDTO, fd, unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)), uintptr(flags))
}

// Splice moves at most n bytes between a pipe and another descriptor (splice(2)).
func Splice(from, to, n int) (int, error) {
	moved, _, e := unix.RawSyscall6(unix.SYS_SPLICE, uintptr(from), 0, uintptr(to), 0, uintptr(n), unix.SPLICE_F_NONBLOCK|unix.SPLICE_F_MOVE)
	return result(moved, e)
}

// Close is close(2).
func Close(fd int) { _, _ = call(unix.SYS_CLOSE, fd, nil, 0, 0) }

// EpollCtl is epoll_ctl(2).
func EpollCtl(epoll, op, fd int, event *unix.EpollEvent) error {
	n, _, e := unix.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(epoll), uintptr(op), uintptr(fd), uintptr(unsafe.Pointer(event)), 0, 0)
	_, err := result(n, e)
	return err
}

// EpollWait is epoll_wait(2). It occupies a processor of the Go scheduler (a P) while it waits, so
// timeoutMS must be short.
func EpollWait(epoll int, events []unix.EpollEvent, timeoutMS int) (int, error) {
	return call(unix.SYS_EPOLL_PWAIT, epoll, unsafe.Pointer(unsafe.SliceData(events)), uintptr(len(events)), uintptr(timeoutMS))
}

// Socket is socket(2) for a non-blocking socket.
func Socket(family, kind int) (fd int, err error) {
	n, _, e := unix.RawSyscall(unix.SYS_SOCKET, uintptr(family), uintptr(kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK), 0)
	return result(n, e)
}

// SetsockoptInt is setsockopt(2) with an integer.
func SetsockoptInt(fd, level, name, value int) error {
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

// Bind is bind(2) to an address of the socket's family, with an IPv6 zone if that is not 0.
func Bind(fd int, address netip.AddrPort, zone uint32) error {
	return name(unix.SYS_BIND, fd, address, zone)
}

// Connect is connect(2).
func Connect(fd int, to netip.AddrPort, zone uint32) error {
	return name(unix.SYS_CONNECT, fd, to, zone)
}

func name(number uintptr, fd int, address netip.AddrPort, zone uint32) error {
	raw := unix.RawSockaddrInet6{Family: unix.AF_INET6, Scope_id: zone}
	size := unsafe.Sizeof(raw)
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&raw.Port))[:], address.Port())
	if address.Addr().Is4() {
		four := (*unix.RawSockaddrInet4)(unsafe.Pointer(&raw))
		four.Family, four.Addr, size = unix.AF_INET, address.Addr().As4(), unsafe.Sizeof(*four)
	} else {
		raw.Addr = address.Addr().As16()
	}
	_, err := call(number, fd, unsafe.Pointer(&raw), size, 0)
	return err
}
