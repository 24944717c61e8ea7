package volumes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/undo"
)

// Names that MountRootfs makes in its directory.
const (
	upperDir  = "upper"  // what the container writes
	workDir   = "work"   // overlayfs' own
	bottomDir = "bottom" // empty, the lowest layer without a writable one: overlayfs requires two
	MergedDir = "merged" // the mount
)

// MountRootfs mounts an overlay of layers (absolute directories, lowest first) with a writable
// layer of its own and returns the path of the merged tree. dir is made if missing and belongs to
// this root file system alone; leftovers of a killed run in it are removed. With readOnly there is
// no writable layer, so that not even a missing mount target can be made: a container with a
// read-only root needs a writable one until everything is mounted in it.
//
// Layers carry overlayfs' marks as user.overlay.* (userxattr), both inside a user namespace and
// outside, so there is one way to unpack a layer. Device files do not work (nodev): a container's
// devices are bind mounts in its /dev. label is as in MountTmpfs: layers keep theirs.
func MountRootfs(dir string, layers []string, readOnly bool, label string) (root string, err error) {
	return mountRootfs(dir, layers, readOnly, label, "")
}

// MountRootfsAgain is MountRootfs with the writable layer that KeepRootfs has kept, if there is one.
func MountRootfsAgain(dir string, layers []string, label, kept string) (root string, err error) {
	return mountRootfs(dir, layers, false, label, kept)
}

func mountRootfs(dir string, layers []string, readOnly bool, label, kept string) (root string, err error) {
	if err := UnmountRootfs(dir); err != nil {
		return "", fmt.Errorf("clear root file system %s: %w", dir, err)
	}
	var u undo.Stack
	defer func() { err = errors.Join(err, u.Undo()) }()

	u.Push("remove "+dir, func() error { return RemoveTree(dir) })
	subs := []string{MergedDir, upperDir, workDir}
	if readOnly {
		subs = []string{MergedDir, bottomDir}
	}
	for _, sub := range subs {
		// 0755: a container's own user enters through it; dir's parents exclude other users.
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return "", fmt.Errorf("make root file system: %w", err)
		}
	}
	again := false
	if kept != "" {
		err := unix.Rename(kept, filepath.Join(dir, upperDir)) // over the empty directory, which os.Rename refuses
		if again = err == nil; !again && err != unix.ENOENT {
			return "", fmt.Errorf("use the kept files again: %w", err)
		}
	}
	// The mode of the topmost directory is the same as of "/", whatever the umask; with a read-only root
	// it is the image's, and the container may have changed a kept one.
	if !readOnly && !again {
		if err := os.Chmod(filepath.Join(dir, upperDir), 0o755); err != nil {
			return "", fmt.Errorf("make root file system: %w", err)
		}
	}
	if err := mountOverlay(dir, layers, readOnly, label); err != nil {
		return "", err
	}
	u.Release()
	return filepath.Join(dir, MergedDir), nil
}

// mountOverlay passes every directory as a descriptor, /proc/self/fd/N: the options of a mount are
// limited to 4096 bytes, and no path needs escaping that way.
func mountOverlay(dir string, layers []string, readOnly bool, label string) error {
	var fds fdList
	defer fds.close()

	lower, err := fds.layers(layers)
	if err != nil {
		return err
	}
	if len(lower) == 0 {
		return errors.New("mount root file system: no layers")
	}
	if readOnly {
		bottom, err := fds.open(filepath.Join(dir, bottomDir))
		if err != nil {
			return fmt.Errorf("open empty layer: %w", err)
		}
		lower = append(lower, bottom)
	}
	options := []string{"userxattr", "lowerdir=" + strings.Join(lower, ":")}
	flags := uintptr(unix.MS_NODEV)
	if readOnly {
		flags |= unix.MS_RDONLY
	} else {
		upper, err := fds.open(filepath.Join(dir, upperDir))
		if err != nil {
			return fmt.Errorf("open writable layer: %w", err)
		}
		work, err := fds.open(filepath.Join(dir, workDir))
		if err != nil {
			return fmt.Errorf("open overlay work directory: %w", err)
		}
		// volatile: the writable layer is discarded with the container, so nothing is synced.
		options = append(options, "upperdir="+upper, "workdir="+work, "volatile")
	}
	if err := unix.Mount("overlay", filepath.Join(dir, MergedDir), "overlay", flags, labelled(strings.Join(options, ","), label)); err != nil {
		return explainOverlay(dir, fmt.Errorf("mount overlay of %d layers on %s: %w", len(layers), filepath.Join(dir, MergedDir), err))
	}
	return nil
}

// fdList keeps directories open, by O_PATH descriptors, until a mount is made.
type fdList []int

func (l *fdList) open(path string) (string, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	*l = append(*l, fd)
	return fmt.Sprintf("/proc/self/fd/%d", fd), nil
}

// layers opens the layers and returns them in overlayfs' order, topmost first. The kernel refuses a
// directory that occurs twice (ELOOP), and images do repeat layers, mostly an empty one. Of equal
// layers only the topmost is visible.
func (l *fdList) layers(paths []string) ([]string, error) {
	type file struct{ dev, ino uint64 }
	files := map[file]bool{}
	var lower []string
	for i := len(paths) - 1; i >= 0; i-- {
		name, err := l.open(paths[i])
		if err != nil {
			return nil, fmt.Errorf("open layer %s: %w", paths[i], err)
		}
		var st unix.Stat_t
		if err := unix.Fstat((*l)[len(*l)-1], &st); err != nil {
			return nil, fmt.Errorf("look at layer %s: %w", paths[i], err)
		}
		id := file{uint64(st.Dev), uint64(st.Ino)}
		if !files[id] {
			files[id] = true
			lower = append(lower, name)
		}
	}
	return lower, nil
}

func (l *fdList) close() {
	for _, fd := range *l {
		unix.Close(fd)
	}
}

// KeepRootfs unmounts what MountRootfs mounted, and keeps the writable layer at another path of the same file system. If
// there is none, nothing is kept.
func KeepRootfs(dir, kept string) error {
	if err := Unmount(filepath.Join(dir, MergedDir)); err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(dir, upperDir)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := RemoveTree(kept); err != nil {
		return err
	}
	return os.Rename(filepath.Join(dir, upperDir), kept)
}

// UnmountRootfs unmounts what MountRootfs mounted, lazily if it is busy, and removes dir, also if
// it is incomplete or does not exist.
func UnmountRootfs(dir string) error {
	if err := Unmount(filepath.Join(dir, MergedDir)); err != nil {
		return err
	}
	return RemoveTree(dir)
}
