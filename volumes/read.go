package volumes

import (
	"errors"
	"fmt"
	"io"

	pathrs "github.com/cyphar/filepath-securejoin/pathrs-lite"
	"golang.org/x/sys/unix"
)

// errTooLarge means that a file is larger than the caller's limit.
var errTooLarge = errors.New("file is too large")

var errNotRegular = errors.New("not a regular file")

// ReadFileIn reads a regular file of at most max bytes below root. It follows every symbolic link,
// also absolute ones, as if root were "/", so a path from an image never leaves root. It refuses
// files other than regular ones (a pipe, /dev/zero) before opening them. A missing file gives
// fs.ErrNotExist, a larger one errTooLarge.
func ReadFileIn(root, path string, max int64) ([]byte, error) {
	b, err := readFileIn(root, path, max)
	if err != nil {
		return nil, fmt.Errorf("read %s in the root file system: %w", path, err)
	}
	return b, nil
}

func readFileIn(root, path string, max int64) ([]byte, error) {
	handle, err := pathrs.OpenInRoot(root, path) // O_PATH: nothing is opened yet
	if err != nil {
		return nil, err
	}
	defer handle.Close()
	st, err := handle.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %v", errNotRegular, st.Mode())
	}
	if st.Size() > max {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are read", errTooLarge, st.Size(), max)
	}
	f, err := pathrs.Reopen(handle, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, max+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > max {
		return nil, fmt.Errorf("%w: it grew beyond %d bytes", errTooLarge, max)
	}
	return b, nil
}
