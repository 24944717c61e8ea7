package rawsys

import (
	"errors"

	"golang.org/x/sys/unix"
)

// TryWrite returns why no file can be made in a directory, or nil. It makes one without a name, because a file system
// that has stopped writing after an error is not always mounted read-only (ext4's errors=remount-ro since Linux 6.14).
// A file system that has no such files, or is full, is no error.
func TryWrite(dir string) error {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err == nil {
		return unix.Close(fd)
	}
	for _, other := range []error{unix.EOPNOTSUPP, unix.EISDIR, unix.EINVAL, unix.ENOSPC, unix.EDQUOT} {
		if errors.Is(err, other) {
			return nil
		}
	}
	return err
}
