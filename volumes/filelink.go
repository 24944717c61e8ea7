package volumes

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// link replaces name in dir by a symbolic link to target that root owns.
func link(dir *os.File, target, temporary, name string, root int) error {
	fd := int(dir.Fd())
	if err := removeBelow(dir, temporary); err != nil {
		return err
	}
	if err := unix.Symlinkat(target, fd, temporary); err != nil {
		return err
	}
	if root != 0 {
		if err := unix.Fchownat(fd, temporary, root, root, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
	}
	return unix.Renameat(fd, temporary, fd, name)
}

// giveTo returns a change that gives files whose user or group is 0 to root.
func giveTo(root int) change {
	return func(fd int, st *unix.Stat_t) (ok bool, err error) {
		uid, gid := -1, -1
		if st.Uid == 0 {
			uid = root
		}
		if st.Gid == 0 {
			gid = root
		}
		if uid == gid && uid < 0 {
			return true, nil
		}
		err = unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW)
		return err == nil, err
	}
}

// makeVisible makes the link that a container opens and replaces what is there.
func makeVisible(dir *os.File, name string, root int) error {
	target := dataLink + "/" + name
	if readlinkAt(dir, name) == target {
		return nil
	}
	err := link(dir, target, newLink, name, root)
	if errors.Is(err, unix.EISDIR) {
		if err = removeBelow(dir, name); err == nil {
			err = link(dir, target, newLink, name, root)
		}
	}
	return err
}

// sweep removes everything from dir except the links that are in use and the directories to keep.
func sweep(dir *os.File, keep ...string) error {
	if _, err := dir.Seek(0, io.SeekStart); err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, name := range names {
		if name == dataLink || slices.Contains(keep, name) || inUse(dir, name) {
			continue
		}
		if err := removeBelow(dir, name); err != nil {
			return err
		}
	}
	return nil
}

// inUse reports whether a name is a link to an existing file.
func inUse(dir *os.File, name string) bool {
	if readlinkAt(dir, name) != dataLink+"/"+name {
		return false
	}
	var st unix.Stat_t
	return unix.Fstatat(int(dir.Fd()), currentFiles(dir)+"/"+name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}

func removeBelow(dir *os.File, name string) error {
	return removeTree(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name))
}
