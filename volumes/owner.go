package volumes

import (
	"errors"
	"fmt"

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
	return eachFile(root, g.give)
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
