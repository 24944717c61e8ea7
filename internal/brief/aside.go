package brief

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Aside takes a file away from Go's own waiting, which would wake threads whenever a loop's is: it
// is another file of the same, for which Go does not wait, and which does not block. Where there is no
// descriptor left the old one stays as it is.
func Aside(old *os.File) (file *os.File, fd int, err error) {
	raw, err := old.SyscallConn()
	if err != nil {
		return old, -1, err
	}
	cerr := raw.Control(func(of uintptr) {
		if fd, err = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 3); err == nil {
			err = unix.SetNonblock(fd, false) // so that it is not waited for
		}
	})
	if err = errors.Join(cerr, err); err != nil {
		return old, -1, err
	}
	file = os.NewFile(uintptr(fd), old.Name())
	return file, fd, errors.Join(old.Close(), unix.SetNonblock(fd, true))
}
