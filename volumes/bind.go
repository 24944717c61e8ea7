package volumes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Bind makes target, a directory or a file like source, and bind-mounts the open file source on it,
// with everything mounted below. It looks up no name again.
func Bind(source *os.File, target string) error {
	var st unix.Stat_t
	err := unix.Fstat(int(source.Fd()), &st)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(target), 0o700)
	}
	if err == nil {
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			err = os.Mkdir(target, 0o700)
		} else {
			err = touch(target)
		}
	}
	if err == nil {
		err = unix.Mount(fmt.Sprintf("/proc/self/fd/%d", source.Fd()), target, "", unix.MS_BIND|unix.MS_REC, "")
	}
	if err != nil {
		return fmt.Errorf("bind %s on %s: %w", source.Name(), target, err)
	}
	return nil
}

// Share makes path a mount of its own with shared propagation: namespaces that copy it later share
// its mounts.
func Share(path string) error {
	if err := unix.Mount(path, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("share %s: %w", path, err)
	}
	return ShareMount(path)
}

// ShareMount is Share for an existing mount.
func ShareMount(path string) error {
	if err := unix.Mount("", path, "", unix.MS_SHARED|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("share %s: %w", path, err)
	}
	return nil
}

// OpenVolume opens a volume that podrun has made, by O_PATH.
func OpenVolume(path string) (*os.File, error) { return openPath(path) }

// Detach undoes Share. A path that is not mounted is not an error.
func Detach(path string) error {
	err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH)
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmount %s: %w", path, err)
	}
	return nil
}

// UnmountTree unmounts path with all that is mounted below it, lazily, and removes it. It is not an
// error if path is not mounted or does not exist.
func UnmountTree(path string) error { return unmountTree(path) }

// UnmountBelow unmounts what Bind has mounted in a directory, and removes the directory.
func UnmountBelow(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("unmount what is in %s: %w", dir, err)
	}
	for _, e := range entries {
		if err := unmountTree(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return RemoveTree(dir)
}

// MountMemory mounts a file system in memory on path, which is made if missing, that the kernel
// never swaps out: for secrets. Only root of the host could mount a tmpfs with that property. It
// has no size limit; only podrun writes to it. label is as in MountTmpfs.
func MountMemory(path, label string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("make memory file system: %w", err)
	}
	if err := unix.Mount("ramfs", path, "ramfs", harmless, labelled("mode=0711", label)); err != nil {
		return fmt.Errorf("mount ramfs on %s: %w", path, err)
	}
	return nil
}

// RecursiveReadOnly reports whether the kernel can make a mount read-only with all that is mounted
// below it (Linux 5.12).
func RecursiveReadOnly() bool {
	return unix.MountSetattr(-1, "", 0, &unix.MountAttr{}) != unix.ENOSYS
}
