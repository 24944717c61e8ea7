package cmdutil

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// OpenInput opens a file that the user names. It refuses a FIFO, which may have no writer; a pipe, as a shell's <()
// makes it, has one.
func OpenInput(name string) (*os.File, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	var st unix.Stat_t
	var fs unix.Statfs_t
	if err = unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO {
		if err = unix.Fstatfs(fd, &fs); err == nil && fs.Type != unix.PIPEFS_MAGIC {
			err = fmt.Errorf("%s is a FIFO: name a file, or write to standard input and name -", name)
		}
	}
	if err == nil {
		err = unix.SetNonblock(fd, false)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}
