package volumes

import (
	"errors"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"
)

// Placement is a volume to be mounted in a root file system.
type Placement struct {
	Source    string // absolute; only podrun changes the files on this path
	Target    string // absolute and clean, in the root file system
	ReadOnly  bool
	Recursive bool     // read-only with all that is mounted below
	Options   []string // nosuid, nodev, noexec
}

// Place mounts volumes in a root file system, one after the other, and returns how many it has
// mounted. Missing directories of a target are made and belong to owner, by its ID here. It stops
// at the first that is not simple: whose target is behind a symbolic link, or which this kernel
// cannot place. The caller must have the rest mounted with the care that links need, and report
// errors.
//
// Mounting a container's volumes this way is faster than with libcontainer, which makes a hundred
// system calls for each. Place looks up no name twice: it holds source and target open from the
// first look-up on, so that renaming directories meanwhile has no effect (CVE-2021-30465).
func Place(root string, owner int, list []Placement) (n int) {
	top, err := openPath(root)
	if err != nil {
		return 0
	}
	defer top.Close()
	for i := range list {
		if placeOne(top, owner, &list[i]) != nil {
			return i
		}
	}
	return len(list)
}

// inRoot resolves paths within the root and refuses links.
const inRoot = unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

func placeOne(root *os.File, owner int, p *Placement) error {
	fd, err := unix.OpenTree(unix.AT_FDCWD, p.Source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return err
	}
	tree := os.NewFile(uintptr(fd), p.Source)
	defer tree.Close()
	if err := setAttributes(tree, p); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	target, err := openOrMake(root, p.Target, st.Mode&unix.S_IFMT == unix.S_IFDIR, 0, owner)
	if err != nil {
		return err
	}
	defer target.Close()
	return unix.MoveMount(fd, "", int(target.Fd()), "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// setAttributes makes a tree of mounts private and sets the requested attributes at its top.
func setAttributes(tree *os.File, p *Placement) error {
	all := unix.MountAttr{Propagation: unix.MS_PRIVATE}
	attr := unix.MountAttr{}
	if p.Recursive {
		all.Attr_set = unix.MOUNT_ATTR_RDONLY
	}
	if p.ReadOnly {
		attr.Attr_set = unix.MOUNT_ATTR_RDONLY
	}
	for word, flag := range map[string]uint64{"nosuid": unix.MOUNT_ATTR_NOSUID, "nodev": unix.MOUNT_ATTR_NODEV, "noexec": unix.MOUNT_ATTR_NOEXEC} {
		if slices.Contains(p.Options, word) {
			attr.Attr_set |= flag
		}
	}
	if err := unix.MountSetattr(int(tree.Fd()), "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &all); err != nil {
		return err
	}
	if attr.Attr_set == 0 {
		return nil
	}
	return unix.MountSetattr(int(tree.Fd()), "", unix.AT_EMPTY_PATH, &attr)
}

// openOrMake opens a path in a root file system and makes it if it is missing: a file, or a
// directory, with a mode and an owner if they matter. They do not for a mount point, and changing
// them costs an overlay as much as making the directory.
func openOrMake(root *os.File, name string, dir bool, mode uint32, owner int) (*os.File, error) {
	f, err := openResolved(root, name, unix.O_PATH, inRoot)
	if !errors.Is(err, unix.ENOENT) {
		return f, err
	}
	parent, err := parentFor(root, path.Dir(name), owner)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	base := path.Base(name)
	switch {
	case dir && mode == 0: // the mount hides it
		err = unix.Mkdirat(int(parent.Fd()), base, 0o755)
	case dir:
		if err = makeIn(parent, base, mode); err == nil && owner != 0 {
			err = unix.Fchownat(int(parent.Fd()), base, owner, owner, unix.AT_SYMLINK_NOFOLLOW)
		}
	default:
		var fd int
		fd, err = unix.Openat(int(parent.Fd()), base, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
		if err == nil {
			err = unix.Close(fd)
		}
	}
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, err
	}
	return openResolved(parent, base, unix.O_PATH, inRoot)
}

func parentFor(root *os.File, name string, owner int) (*os.File, error) {
	if name == "/" {
		return openResolved(root, "/", unix.O_PATH|unix.O_DIRECTORY, inRoot)
	}
	return openOrMake(root, name, true, 0o755, owner)
}

// EnsureMountPoint reports whether name, an absolute path below the volume, exists, so that another volume
// can be mounted there. With mayMake it makes a missing one. Paths through symbolic links count as existing:
// the process that mounts resolves them.
func EnsureMountPoint(volume, name string, mayMake bool) bool {
	top, err := openPath(volume)
	if err != nil {
		return false
	}
	defer top.Close()
	var f *os.File
	if mayMake {
		f, err = openOrMake(top, name, false, 0, 0)
	} else {
		f, err = openResolved(top, name, unix.O_PATH, inRoot)
	}
	if err == nil {
		_ = f.Close() // nothing was written to it
	}
	return err == nil || errors.Is(err, unix.ELOOP)
}
