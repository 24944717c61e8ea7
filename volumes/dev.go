package volumes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/undo"
)

// devNodes are the devices in every container (OCI runtime specification, config-linux.md, default
// devices).
var devNodes = []string{"null", "zero", "full", "random", "urandom", "tty"}

// devLinks are the symbolic links that programs expect, from the same source.
var devLinks = map[string]string{
	"fd":     "/proc/self/fd",
	"stdin":  "/proc/self/fd/0",
	"stdout": "/proc/self/fd/1",
	"stderr": "/proc/self/fd/2",
	"ptmx":   "pts/ptmx",
}

// MountDev makes a container's own /dev on path, made if missing, to be bind-mounted recursively: a
// tmpfs with the host's harmless devices, the usual links, the pod's shared memory and message
// queues, and pts for its terminals. It is not shared within the pod: a container may write there
// (syslog's /dev/log), and could redirect a sibling's /dev/stdin. Device files that it makes there
// do not work (nodev); those that are bind-mounted keep the flags of the host's /dev.
func (t SharedMounts) MountDev(path string) (err error) {
	var u undo.Stack
	defer func() { err = errors.Join(err, u.Undo()) }()
	u.Push("take down "+path, func() error { return UnmountDev(path) })

	if err := os.MkdirAll(path, 0o755); err != nil {
		return fmt.Errorf("make /dev: %w", err)
	}
	if err := mountTmpfs(path, memorySize, 0o755, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, t.Label); err != nil {
		return fmt.Errorf("mount /dev: %w", err)
	}
	for _, name := range devNodes {
		target := filepath.Join(path, name)
		if err := touch(target); err != nil {
			return fmt.Errorf("make /dev: %w", err)
		}
		if err := unix.Mount(filepath.Join("/dev", name), target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind /dev/%s: %w", name, err)
		}
	}
	for name, target := range devLinks {
		if err := os.Symlink(target, filepath.Join(path, name)); err != nil {
			return fmt.Errorf("make /dev: %w", err)
		}
	}
	for name, source := range map[string]string{"pts": "", "shm": t.Shm, "mqueue": t.Mqueue} {
		target := filepath.Join(path, name)
		if err := os.Mkdir(target, 0o755); err != nil {
			return fmt.Errorf("make /dev: %w", err)
		}
		if source == "" {
			continue
		}
		if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind /dev/%s: %w", name, err)
		}
		if err := disableDevices(target); err != nil {
			return fmt.Errorf("bind /dev/%s: %w", name, err)
		}
	}
	if t.Pts != "" {
		if err := unix.Mount("devpts", filepath.Join(path, "pts"), "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, labelled(t.Pts, t.Label)); err != nil {
			return fmt.Errorf("mount /dev/pts: %w", err)
		}
	}
	u.Release()
	return nil
}

// disableDevices disables device files and set-id programs in a mount, which may be the host's. Where
// mount_setattr(2) is missing (before Linux 5.12) or a filter forbids it, it uses mount(2).
func disableDevices(path string) error {
	err := unix.MountSetattr(unix.AT_FDCWD, path, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV})
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return remountWithoutDevices(path)
	}
	return err
}

// remountWithoutDevices is disableDevices with mount(2), which replaces all flags of a mount: it
// keeps the flags that are set.
func remountWithoutDevices(path string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return err
	}
	// The flags of statfs(2) have the numbers of mount(2), except ST_RELATIME.
	flags := uintptr(st.Flags) & (unix.ST_RDONLY | unix.ST_NOEXEC | unix.ST_NOATIME | unix.ST_NODIRATIME)
	if st.Flags&unix.ST_RELATIME != 0 {
		flags |= unix.MS_RELATIME
	}
	return unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_NOSUID|unix.MS_NODEV|flags, "")
}

// touch makes an empty file as a mount point.
func touch(path string) error {
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return &os.PathError{Op: "create", Path: path, Err: err}
	}
	return unix.Close(fd)
}

// UnmountDev undoes MountDev, also if that was incomplete or did not happen.
func UnmountDev(path string) error { return unmountTree(path) }
