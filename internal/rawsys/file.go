package rawsys

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Unpolled takes a file away from Go's own waiting, which would wake threads whenever a loop's is: it
// is another file of the same, for which Go does not wait, and which does not block. Where there is no
// descriptor left the old one stays as it is.
func Unpolled(old *os.File) (file *os.File, fd int, err error) {
	if fd, err = Dup(old); err != nil {
		return old, -1, err
	}
	if err = unix.SetNonblock(fd, false); err != nil { // so that it is not waited for
		Close(fd)
		return old, -1, err
	}
	file = os.NewFile(uintptr(fd), old.Name())
	return file, fd, errors.Join(old.Close(), unix.SetNonblock(fd, true))
}

// Dup is another descriptor of the same, for which Go does not wait, or -1 where there is none left.
func Dup(of syscall.Conn) (fd int, err error) {
	raw, err := of.SyscallConn()
	if err != nil {
		return -1, err
	}
	fd = -1
	cerr := raw.Control(func(old uintptr) { fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 3) })
	return fd, errors.Join(cerr, err)
}
