package volumes

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// change is an operation on a file of a volume. fd may be an O_PATH descriptor; for a symbolic link
// it is the link itself, never its target. ok reports that this process may change the file.
type change func(fd int, st *unix.Stat_t) (ok bool, err error)

// eachFile applies do to everything in a volume and counts the files that could not be changed. It
// follows no link and enters no mount. The volume's own directory comes last.
func eachFile(root *os.File, do change) (left int, err error) {
	// Directories are opened by their path below the root, never through a chain of descriptors:
	// their depth is not limited.
	dirs := []string{"."}
	for i := 0; i < len(dirs); i++ {
		below, n, err := do.inDir(root, dirs[i])
		if err != nil {
			return left, fmt.Errorf("%s: %w", dirs[i], err)
		}
		dirs = append(dirs, below...)
		left += n
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		n, err := do.toDir(root, dirs[i])
		if err != nil {
			return left, fmt.Errorf("%s: %w", dirs[i], err)
		}
		left += n
	}
	return left, nil
}

// openInside opens a directory of the volume without following links or entering mounts; nil if it
// no longer exists.
func openInside(root *os.File, name string) (*os.File, error) {
	dir, err := openBelow(root, name)
	if vanished(err) {
		return nil, nil
	}
	return dir, err
}

// vanished reports whether an error means that a file was replaced or removed meanwhile.
func vanished(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EXDEV)
}

// inDir applies do to the files in a directory and returns its subdirectories.
func (do change) inDir(root *os.File, name string) (dirs []string, left int, err error) {
	dir, err := openInside(root, name)
	if dir == nil || err != nil {
		return nil, 0, err
	}
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(batch)
		if errors.Is(err, io.EOF) || errors.Is(err, unix.ENOENT) {
			return dirs, left, nil
		}
		if err != nil {
			return nil, left, err
		}
		for _, entry := range names {
			isDir, ok, err := do.toEntry(dir, entry)
			switch {
			case err != nil:
				return nil, left, fmt.Errorf("%s: %w", entry, err)
			case isDir:
				dirs = append(dirs, path.Join(name, entry))
			case !ok:
				left++
			}
		}
	}
}

// toEntry applies do to an entry that is not a directory.
func (do change) toEntry(dir *os.File, name string) (isDir, ok bool, err error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_BENEATH}
	fd, err := unix.Openat2(int(dir.Fd()), name, &how)
	if vanished(err) || errors.Is(err, unix.EAGAIN) {
		return false, true, nil
	}
	if err != nil {
		return false, false, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return false, false, err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return true, true, nil
	}
	ok, err = do(fd, &st)
	return false, ok, err
}

func (do change) toDir(root *os.File, name string) (left int, err error) {
	dir, err := openInside(root, name)
	if dir == nil || err != nil {
		return 0, err
	}
	defer dir.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return 0, err
	}
	ok, err := do(int(dir.Fd()), &st)
	if !ok {
		left = 1
	}
	return left, err
}
