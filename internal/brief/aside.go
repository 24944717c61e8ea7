package brief

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Aside takes a file away from Go's own waiting, which would wake threads whenever a loop's is: it
// is another file of the same, for which Go does not wait, and which does not block. Where there is no
// descriptor left the old one stays as it is.
func Aside(old *os.File) (file *os.File, fd int, err error) {
	if fd, err = Copy(old); err != nil {
		return old, -1, err
	}
	if err = unix.SetNonblock(fd, false); err != nil { // so that it is not waited for
		Close(fd)
		return old, -1, err
	}
	file = os.NewFile(uintptr(fd), old.Name())
	return file, fd, errors.Join(old.Close(), unix.SetNonblock(fd, true))
}

// Copy is another descriptor of the same, for which Go does not wait, or -1 where there is none left.
func Copy(of syscall.Conn) (fd int, err error) {
	raw, err := of.SyscallConn()
	if err != nil {
		return -1, err
	}
	fd = -1
	cerr := raw.Control(func(old uintptr) { fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 3) })
	return fd, errors.Join(cerr, err)
}
