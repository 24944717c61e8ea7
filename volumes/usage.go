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

// Count is what files use of a file system.
type Count struct{ Bytes, Inodes int64 }

// Add adds another count.
func (c *Count) Add(o Count) {
	c.Bytes += o.Bytes
	c.Inodes += o.Inodes
}

// Usage counts the bytes on disk of path and everything below it, as du does: the allocated blocks,
// not the length of files. It follows no symbolic link and enters no mount, and its memory does not
// grow with the number of files. A file with several names is counted once, if all its names are
// below path: each counts for its share of the bytes, and as an inode. A missing path uses nothing. Files that appear or
// disappear meanwhile may be counted or not. The error is ErrTooDeep or one of the file system.
func Usage(path string) (Count, error) {
	top, err := openDir(unix.AT_FDCWD, filepath.Clean(path), 0)
	if errors.Is(err, unix.ENOENT) {
		return Count{}, nil
	}
	if err != nil {
		return Count{}, fmt.Errorf("count what is in %s: %w", path, err)
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
func UsageOfRootfs(dir string) (Count, error) { return Usage(filepath.Join(dir, upperDir)) }

// usage counts a directory's own blocks and its content.
func usage(dir *os.File, depth int) (sum Count, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return sum, err
	}
	sum = Count{st.Blocks * blockSize, 1}
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
			sum.Add(n)
			if err != nil {
				return sum, err
			}
		}
	}
}

func usageBelow(dir *os.File, name string, depth int) (Count, error) {
	var st unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
	if errors.Is(err, unix.ENOENT) {
		return Count{}, nil
	}
	if err != nil {
		return Count{}, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return Count{st.Blocks * blockSize / max(int64(st.Nlink), 1), 1}, nil
	}
	if depth == maxDepth {
		return Count{}, ErrTooDeep
	}
	sub, err := openBelow(dir, name)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), errors.Is(err, unix.EXDEV):
		return Count{}, nil // it has been replaced, or is a mount
	case err != nil:
		return Count{}, err
	}
	defer sub.Close()
	return usage(sub, depth+1)
}
