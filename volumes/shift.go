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

// IDOutOfRange is the error for a file whose owner's id does not exist in the user namespace.
type IDOutOfRange struct {
	Path  string // in the image
	ID    int
	Count int
}

func (e *IDOutOfRange) Error() string {
	return fmt.Sprintf("%s belongs to the id %d, and the pod has only the ids below %d", e.Path, e.ID, e.Count)
}

// ShiftLayers makes dir a layer with all files of layers (absolute directories, lowest first). It adds
// first to the owner and the group of each file; ids from count on are an error. An existing dir is the
// complete result of an earlier call. The result is durable: the next call removes what a killed call
// has left beside it.
//
// overlayfs copies the files in the kernel when their owner changes. The kernel could show them
// with other owners without a copy (mount_setattr), but only for root: the file system of a disk
// does not belong to a user namespace.
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

// shift changes the owner of one file, and restores what that clears: set-id bits and capabilities.
func shift(root, path string, first, count int) error {
	st, err := os.Lstat(path)
	if err != nil {
		return err
	}
	owner := st.Sys().(*syscall.Stat_t)
	if id := int(max(owner.Uid, owner.Gid)); id >= count {
		inside, _ := filepath.Rel(root, path)
		return &IDOutOfRange{"/" + inside, id, count}
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

// unenterable are directories that exist on hosts and that unprivileged users cannot enter.
var unenterable = []string{"/root", "/lost+found", "/var/lib/private", "/etc/ssl/private"}

// traversableMark is a file in a directory on which MountTraversable has mounted.
const traversableMark = ".podrun"

// MountTraversable mounts an empty file system, which every user may traverse, on a directory that users
// cannot enter, so that the mount hides nothing from them. It returns the directory: a later call in the
// same mount namespace returns the same one.
func MountTraversable() (string, error) {
	for _, dir := range unenterable {
		if _, err := os.Lstat(filepath.Join(dir, traversableMark)); err == nil {
			return dir, nil
		}
	}
	for _, dir := range unenterable {
		st, err := os.Lstat(dir)
		if err != nil || !st.IsDir() || unix.Access(dir, unix.X_OK) == nil {
			continue
		}
		if err := mountTmpfs(dir, memorySize, 0o711, unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
			return "", fmt.Errorf("mount on %s: %w", dir, err)
		}
		return dir, touch(filepath.Join(dir, traversableMark))
	}
	return "", fmt.Errorf("there is none of the directories %v that this user cannot enter", unenterable)
}

// UnmountTraversable undoes MountTraversable.
func UnmountTraversable() error {
	for _, dir := range unenterable {
		if _, err := os.Lstat(filepath.Join(dir, traversableMark)); err == nil {
			return Detach(dir)
		}
	}
	return nil
}
