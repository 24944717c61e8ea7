package volumes

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrTooDeep means that directories are nested deeper than Usage follows them.
var ErrTooDeep = errors.New("directories are nested too deep to be counted")

// maxDepth is the maximum depth of Usage, which keeps one open descriptor for each level.
const maxDepth = 256

// fewNames limits how many names of each level are in memory.
const fewNames = 128

// blockSize is the unit of st_blocks, whatever the file system's own is.
const blockSize = 512

// Usage counts the bytes on disk of path and everything below it, as du does: the allocated blocks,
// not the length of files. It follows no symbolic link and enters no mount, and its memory does not
// grow with the number of files. A file with several names is counted once, if all its names are
// below path: each counts for its share. A missing path uses nothing. Files that appear or
// disappear meanwhile may be counted or not. The error is ErrTooDeep or one of the file system.
func Usage(path string) (int64, error) {
	top, err := openDir(unix.AT_FDCWD, filepath.Clean(path), 0)
	if errors.Is(err, unix.ENOENT) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("count what is in %s: %w", path, err)
	}
	defer top.Close()
	n, err := usage(top, 1)
	if err != nil {
		return n, fmt.Errorf("count what is in %s: %w", path, err)
	}
	return n, nil
}

// UsageOfRootfs returns the Usage of what a container has written to the root file system that
// MountRootfs has mounted at dir.
func UsageOfRootfs(dir string) (int64, error) { return Usage(filepath.Join(dir, upperDir)) }

// usage counts a directory's own blocks and its content.
func usage(dir *os.File, depth int) (int64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return 0, err
	}
	sum := st.Blocks * blockSize
	for {
		names, err := dir.Readdirnames(fewNames)
		if errors.Is(err, io.EOF) || errors.Is(err, unix.ENOENT) { // the directory itself was removed
			return sum, nil
		}
		if err != nil {
			return sum, err
		}
		for _, name := range names {
			n, err := usageBelow(dir, name, depth)
			sum += n
			if err != nil {
				return sum, err
			}
		}
	}
}

func usageBelow(dir *os.File, name string, depth int) (int64, error) {
	var st unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
	if errors.Is(err, unix.ENOENT) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return st.Blocks * blockSize / max(int64(st.Nlink), 1), nil
	}
	if depth == maxDepth {
		return 0, ErrTooDeep
	}
	sub, err := openBelow(dir, name)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), errors.Is(err, unix.EXDEV):
		return 0, nil // it has been replaced, or is a mount
	case err != nil:
		return 0, err
	}
	defer sub.Close()
	return usage(sub, depth+1)
}
