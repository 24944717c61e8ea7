package volumes

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// Group gives a volume to a group, as the kubelet does for fsGroup
// (pkg/volume/volume_linux.go).
type Group struct {
	ID             int
	ReadOnly       bool // nobody writes to the volume
	OnRootMismatch bool // nothing is done if the volume's own directory is right
}

// perm is what the group gets of a file.
func (g Group) perm(dir bool) uint32 {
	bits := uint32(0o660)
	if g.ReadOnly {
		bits = 0o440
	}
	if dir {
		bits |= 0o110 | unix.S_ISGID
	}
	return bits
}

func (g Group) owns(st *unix.Stat_t) bool {
	want := g.perm(st.Mode&unix.S_IFMT == unix.S_IFDIR)
	return st.Gid == uint32(g.ID) && st.Mode&want == want
}

// Apply gives everything in a volume to the group. It follows no link and enters no
// mount. The volume's own directory comes last, so that one who was interrupted starts
// again. Files that are not ours to give are left, and counted: they belong to ids that
// the user namespace does not have.
func (g Group) Apply(volume string) (left int, err error) {
	left, err = g.apply(volume)
	if err != nil {
		return left, fmt.Errorf("give %s to group %d: %w", volume, g.ID, err)
	}
	return left, nil
}

func (g Group) apply(volume string) (left int, err error) {
	root, err := openDir(unix.AT_FDCWD, volume, 0)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(root.Fd()), &st); err != nil {
		return 0, err
	}
	if g.OnRootMismatch && g.owns(&st) {
		return 0, nil
	}
	// Directories are found by their path below the root, never by a chain of
	// descriptors: however deep they are.
	dirs := []string{"."}
	for i := 0; i < len(dirs); i++ {
		below, n, err := g.giveFiles(root, dirs[i])
		if err != nil {
			return left, fmt.Errorf("%s: %w", dirs[i], err)
		}
		dirs = append(dirs, below...)
		left += n
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		n, err := g.giveDir(root, dirs[i])
		if err != nil {
			return left, fmt.Errorf("%s: %w", dirs[i], err)
		}
		left += n
	}
	return left, nil
}

// openInside opens a directory of the volume that is reached without links and mounts;
// nil if there is no such one any more.
func openInside(root *os.File, name string) (*os.File, error) {
	dir, err := openBelow(root, name)
	if vanished(err) {
		return nil, nil
	}
	return dir, err
}

// vanished says of an error that something has become something else meanwhile.
func vanished(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EXDEV)
}

// giveFiles gives the files in a directory to the group, and lists its directories.
func (g Group) giveFiles(root *os.File, name string) (dirs []string, left int, err error) {
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
			isDir, ok, err := g.giveEntry(dir, entry)
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

// giveEntry gives anything but a directory to the group.
func (g Group) giveEntry(dir *os.File, name string) (isDir, ok bool, err error) {
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
	ok, err = g.give(fd, &st)
	return false, ok, err
}

func (g Group) giveDir(root *os.File, name string) (left int, err error) {
	dir, err := openInside(root, name)
	if dir == nil || err != nil {
		return 0, err
	}
	defer dir.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return 0, err
	}
	ok, err := g.give(int(dir.Fd()), &st)
	if !ok {
		left = 1
	}
	return left, err
}

// give changes the group and the mode of an open file; of a symbolic link only the
// group, as it has no mode.
func (g Group) give(fd int, st *unix.Stat_t) (ok bool, err error) {
	link := st.Mode&unix.S_IFMT == unix.S_IFLNK
	if st.Gid != uint32(g.ID) {
		err = unix.Fchownat(fd, "", -1, g.ID, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW)
	}
	want := g.perm(st.Mode&unix.S_IFMT == unix.S_IFDIR)
	// A change of the group has taken set-id bits away.
	if err == nil && !link && (st.Mode&want != want || st.Gid != uint32(g.ID)) {
		err = unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), st.Mode&0o7777|want)
	}
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EROFS) {
		return false, nil
	}
	return err == nil, err
}
