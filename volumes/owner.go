package volumes

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Group gives a volume to a group, as the kubelet does for fsGroup (pkg/volume/volume_linux.go).
type Group struct {
	ID             int
	ReadOnly       bool // the volume is never written to
	OnRootMismatch bool // does nothing if the volume's own directory is right
}

// perm returns the permissions that the group gets.
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

// Apply gives everything in a volume to the group. It follows no link and enters no mount. The
// volume's own directory comes last, so that a call after an interrupted one starts again. It skips
// and counts files that this process may not change: they belong to IDs outside of the user
// namespace.
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
	return eachFile(root, g.give)
}

// give changes the group and the mode of an open file; for a symbolic link only the group, as it
// has no mode.
func (g Group) give(fd int, st *unix.Stat_t) (ok bool, err error) {
	link := st.Mode&unix.S_IFMT == unix.S_IFLNK
	if st.Gid != uint32(g.ID) {
		err = unix.Fchownat(fd, "", -1, g.ID, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW)
	}
	want := g.perm(st.Mode&unix.S_IFMT == unix.S_IFDIR)
	// The change of the group has cleared set-id bits.
	if err == nil && !link && (st.Mode&want != want || st.Gid != uint32(g.ID)) {
		err = unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), st.Mode&0o7777|want)
	}
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EROFS) {
		return false, nil
	}
	return err == nil, err
}
