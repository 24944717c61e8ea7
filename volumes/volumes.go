// Package volumes makes the files that a container sees: root file systems (overlay), directories
// and tmpfs for volumes, and the pod's /dev, /sys and shared memory.
//
// All of it runs as root of a user and mount namespace (or as root). Functions that unmount or
// remove accept incomplete and missing trees.
package volumes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// MakeDir makes the directory of a volume with this mode, whatever the umask; the kubelet's mode is
// 0777. An existing directory keeps its content and mode.
func MakeDir(path string, mode uint32) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make volume: %w", err)
	}
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrExist) {
		if st, lerr := os.Lstat(path); lerr == nil && st.IsDir() {
			return nil
		}
	}
	if err == nil {
		err = unix.Chmod(path, mode)
	}
	if err != nil {
		return fmt.Errorf("make volume: %w", err)
	}
	return nil
}

// MountTmpfs mounts a tmpfs of at most size bytes (0: the kernel's default, half of the memory) on path,
// which is made if missing. It also limits the number of files, to one for every 4 KiB, at least 1024.
// mode is the mode of its root directory, such as 0o1777. Set-user-ID and device files on it have no
// effect. label is the SELinux label of all that is in it; "": the policy decides.
func MountTmpfs(path string, size int64, mode uint32, label string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("make tmpfs: %w", err)
	}
	if err := mountTmpfs(path, size, mode, unix.MS_NOSUID|unix.MS_NODEV, label); err != nil {
		return fmt.Errorf("mount tmpfs on %s: %w", path, err)
	}
	return nil
}

// MountHugePages mounts a hugetlbfs with pages of pageSize bytes on path, which is made if missing. mode
// is the mode of its root directory. The cgroups' limits of huge pages limit its size. The kernel
// permits it to root of the host only. label is as in MountTmpfs.
func MountHugePages(path string, pageSize int64, mode uint32, label string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("make hugetlbfs: %w", err)
	}
	options := labelled(fmt.Sprintf("pagesize=%d,mode=%04o", pageSize, mode), label)
	if err := unix.Mount("nodev", path, "hugetlbfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("mount hugetlbfs on %s: %w", path, err)
	}
	return nil
}

// minInodes is the limit of files of the smallest tmpfs.
const minInodes = 1024

func mountTmpfs(path string, size int64, mode uint32, flags uintptr, label string) error {
	options := fmt.Sprintf("mode=%04o", mode)
	if size > 0 {
		// An empty file takes no block but a kilobyte of the kernel's memory; the kernel's own
		// limit is one for every page of a tmpfs of its default size.
		options += fmt.Sprintf(",size=%d,nr_inodes=%d", size, max(size/4096, minInodes))
	}
	return unix.Mount("tmpfs", path, "tmpfs", flags, labelled(options, label))
}

// Unmount unmounts path, lazily if it is busy. It is not an error if path is missing or not a mount
// point.
func Unmount(path string) error {
	err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW)
	if errors.Is(err, unix.EBUSY) {
		err = unix.Unmount(path, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH)
	}
	if err == nil || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return fmt.Errorf("unmount %s: %w", path, err)
}
