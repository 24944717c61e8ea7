package rawsys

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Open opens a file that Go does not poll, without the five system calls with which Go finds out whether it can.
func Open(path string, flags int) (fd int, err error) {
	for {
		fd, err = unix.Open(path, flags|unix.O_CLOEXEC, 0)
		switch err {
		case nil:
			return fd, nil
		case unix.EINTR:
		default:
			return -1, &os.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// Unpolled removes a file from Go's poller, which would wake threads whenever an event loop's
// poller is woken. It returns a duplicate of the file that Go does not poll and that does not
// block. If no descriptor is left, it returns the old file unchanged.
func Unpolled(old *os.File) (file *os.File, fd int, err error) {
	if fd, err = Dup(old); err != nil {
		return old, -1, err
	}
	if err = unix.SetNonblock(fd, false); err != nil { // so that Go does not poll it
		Close(fd)
		return old, -1, err
	}
	file = os.NewFile(uintptr(fd), old.Name())
	return file, fd, errors.Join(old.Close(), unix.SetNonblock(fd, true))
}

// Dup returns a duplicate descriptor that Go does not poll, or -1 if no descriptor is left.
func Dup(of syscall.Conn) (fd int, err error) {
	raw, err := of.SyscallConn()
	if err != nil {
		return -1, err
	}
	fd = -1
	cerr := raw.Control(func(old uintptr) { fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 3) })
	return fd, errors.Join(cerr, err)
}
