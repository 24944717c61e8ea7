package volumes

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// link replaces name in dir by a link to target.
func link(dir *os.File, target, temporary, name string) error {
	at := int(dir.Fd())
	if err := removeBelow(dir, temporary); err != nil {
		return err
	}
	if err := unix.Symlinkat(target, at, temporary); err != nil {
		return err
	}
	return unix.Renameat(at, temporary, at, name)
}

// visible makes the link that a container opens, whatever is there in its place.
func visible(dir *os.File, name string) error {
	target := dataLink + "/" + name
	if readlinkAt(dir, name) == target {
		return nil
	}
	err := link(dir, target, newLink, name)
	if errors.Is(err, unix.EISDIR) {
		if err = removeBelow(dir, name); err == nil {
			err = link(dir, target, newLink, name)
		}
	}
	return err
}

// sweep removes everything from dir but the links that are in use and the
// directories to keep.
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

// inUse says whether a name is a link to a file that is there.
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
