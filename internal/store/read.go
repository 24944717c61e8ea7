package store

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/rawsys"
)

// readFile is os.ReadFile without the five system calls with which Go finds out that it cannot poll a file,
// and without the last read of a file that has been read to its size. Commands read a dozen small files of
// each pod.
func readFile(path string) ([]byte, error) {
	fd, err := rawsys.Open(path, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	// A read of less than the buffer ends a regular file. One of /proc has the size 0.
	b := make([]byte, 0, max(st.Size, 511)+1)
	for {
		n, err := unix.Read(fd, b[len(b):cap(b)])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, &os.PathError{Op: "read", Path: path, Err: err}
		}
		b = b[:len(b)+n]
		if n == 0 || int64(len(b)) == st.Size {
			return b, nil
		}
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
	}
}
