package volumes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/undo"
)

// TooManyIDs says that a file belongs to an id that does not exist for who is to have it.
type TooManyIDs struct {
	Path  string // in the image
	ID    int
	Count int
}

func (e *TooManyIDs) Error() string {
	return fmt.Sprintf("%s belongs to the id %d, and there are %d", e.Path, e.ID, e.Count)
}

// ShiftLayers makes dir a layer with all files of layers (absolute directories, lowest
// first), each given to an owner and a group that is larger by first; there are count ids. A
// dir that is there is what an earlier call has made, whole. It is durable: what a killed
// call has left beside it is removed by the next.
//
// The kernel copies the files: overlayfs does, when their owner changes. It could show them
// with other owners without a copy (mount_setattr), but to root only: the file system of a
// disk is not that of a user namespace.
func ShiftLayers(dir string, layers []string, first, count int) (err error) {
	if _, err := os.Lstat(dir); err == nil {
		return nil
	}
	making := dir + ".new"
	var u undo.Stack
	u.Push("remove "+making, func() error { return UnmountRootfs(making) })
	defer func() { err = errors.Join(err, u.Undo()) }()
	root, err := MountRootfs(making, layers, false, "")
	if err != nil {
		return err
	}
	err = filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = shift(root, path, first, count)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("give the image to the pod's own users: %w", err)
	}
	if err := Unmount(root); err != nil {
		return err
	}
	upper, err := os.Open(filepath.Join(making, upperDir))
	if err != nil {
		return err
	}
	defer upper.Close()
	if err := unix.Syncfs(int(upper.Fd())); err != nil {
		return fmt.Errorf("save layer %s: %w", dir, err)
	}
	return os.Rename(upper.Name(), dir)
}

// shift gives one file to another owner, and back what that takes away: the bits that let
// it run as its owner, and capabilities.
func shift(root, path string, first, count int) error {
	st, err := os.Lstat(path)
	if err != nil {
		return err
	}
	owner := st.Sys().(*syscall.Stat_t)
	if id := int(max(owner.Uid, owner.Gid)); id >= count {
		inside, _ := filepath.Rel(root, path)
		return &TooManyIDs{"/" + inside, id, count}
	}
	caps := make([]byte, 64)
	n, err := unix.Lgetxattr(path, "security.capability", caps)
	if err != nil {
		n = 0
	}
	if err := os.Lchown(path, int(owner.Uid)+first, int(owner.Gid)+first); err != nil {
		return err
	}
	if st.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 && st.Mode()&fs.ModeSymlink == 0 {
		if err := os.Chmod(path, st.Mode()); err != nil {
			return err
		}
	}
	if n > 0 {
		return unix.Lsetxattr(path, "security.capability", caps[:n], 0)
	}
	return nil
}

// closed are directories that hosts have and ordinary users cannot enter.
var closed = []string{"/root", "/lost+found", "/var/lib/private", "/etc/ssl/private"}

// openMark says of a directory that MountOpen has made it what it is.
const openMark = ".podrun"

// MountOpen mounts an empty file system, which every user may pass through, on a directory
// that its caller could not enter before: nothing is hidden by it. It returns the directory;
// one that it was done to before in this mount namespace is returned again.
func MountOpen() (string, error) {
	for _, dir := range closed {
		if _, err := os.Lstat(filepath.Join(dir, openMark)); err == nil {
			return dir, nil
		}
	}
	for _, dir := range closed {
		st, err := os.Lstat(dir)
		if err != nil || !st.IsDir() || unix.Access(dir, unix.X_OK) == nil {
			continue
		}
		if err := mountTmpfs(dir, memorySize, 0o711, unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
			return "", fmt.Errorf("mount on %s: %w", dir, err)
		}
		return dir, touch(filepath.Join(dir, openMark))
	}
	return "", fmt.Errorf("there is none of the directories %v that this user cannot enter", closed)
}

// UnmountOpen takes back what MountOpen has mounted, if it has.
func UnmountOpen() error {
	for _, dir := range closed {
		if _, err := os.Lstat(filepath.Join(dir, openMark)); err == nil {
			return Detach(dir)
		}
	}
	return nil
}
