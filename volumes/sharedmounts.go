package volumes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/undo"
)

// SharedMountSpec specifies where a pod's shared mounts are made, and in whose namespaces.
type SharedMountSpec struct {
	Dir          string // a directory of the pod's own; made if missing
	NetNS, IPCNS string // the pod's, as /proc/1/ns/net; NetNS is "" in the host's network
	Label        string // SELinux label of what containers may write to; "": the policy decides
}

// SharedMounts are the mounts of the pod, made once, which containers bind-mount, /sys recursively:
// a bind mount is faster than a new mount, and mqueue and sysfs can be mounted only by a process in
// the pod's own IPC and network namespaces.
type SharedMounts struct {
	Sys    string // for /sys: read-only, the host's sensitive parts masked
	Shm    string // for /dev/shm: shared memory of the pod
	Mqueue string // for /dev/mqueue: POSIX message queues of the pod
	Label  string // the SharedMountSpec's
	Pts    string // the options of a container's own devpts; "": MountDev does not mount it
}

// memorySize is 64 MiB, the size that Docker and containerd use for /dev and /dev/shm.
const memorySize = 64 << 20

// harmless are the flags of mounts that contain data only.
const harmless = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC

// sysMasked are the masked directories of /sys: they reveal the host's hardware and policy.
var sysMasked = []string{"firmware", "devices/virtual/powercap", "fs/selinux", "dev/block"}

// Paths returns the paths that Mount uses.
func (s SharedMountSpec) Paths() SharedMounts {
	return SharedMounts{Sys: filepath.Join(s.Dir, "sys"), Shm: filepath.Join(s.Dir, "shm"), Mqueue: filepath.Join(s.Dir, "mqueue"), Label: s.Label}
}

func (t SharedMounts) all() []string { return []string{t.Sys, t.Shm, t.Mqueue} }

// Mount makes all of the pod's shared mounts below Dir, or none. It first removes what a
// killed run left there.
func (s SharedMountSpec) Mount() (_ SharedMounts, err error) {
	if err := s.Unmount(); err != nil {
		return SharedMounts{}, err
	}
	var u undo.Stack
	defer func() { err = errors.Join(err, u.Undo()) }()
	u.Push("unmount the pod's shared mounts", s.Unmount)

	t := s.Paths()
	for _, dir := range t.all() {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return SharedMounts{}, fmt.Errorf("make shared mounts: %w", err)
		}
	}
	if err := mountTmpfs(t.Shm, memorySize, 0o1777, harmless, t.Label); err != nil {
		return SharedMounts{}, fmt.Errorf("mount the pod's shared memory: %w", err)
	}
	err = nsthread.Do(func() error {
		if err := unix.Mount("mqueue", t.Mqueue, "mqueue", harmless, ""); err != nil {
			return fmt.Errorf("mount the pod's message queues: %w", err)
		}
		return nil
	}, s.IPCNS)
	if err == nil {
		err = labelQueues(t.Mqueue, t.Label)
	}
	if err == nil && s.NetNS == "" {
		err = bindHostSys(t.Sys)
	} else if err == nil {
		err = nsthread.Do(func() error { return mountSys(t.Sys) }, s.NetNS)
	}
	if err != nil {
		return SharedMounts{}, err
	}
	if err := maskSys(t.Sys); err != nil {
		return SharedMounts{}, err
	}
	u.Release()
	return t, nil
}

// mountSys mounts a read-only /sys of the network namespace that this thread is in. Only the mount
// is read-only, not the file system, which a privileged container mounts again, unless the host's
// is read-only.
func mountSys(path string) error {
	err := unix.Mount("sysfs", path, "sysfs", harmless, "")
	if err == nil {
		err = unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|harmless, "")
	} else if errors.Is(err, unix.EPERM) {
		err = unix.Mount("sysfs", path, "sysfs", harmless|unix.MS_RDONLY, "")
	}
	if err != nil {
		return fmt.Errorf("mount the pod's /sys: %w", err)
	}
	return nil
}

// bindHostSys bind-mounts the host's own /sys read-only, with all that is mounted in it: the sysfs
// of the host's network belongs to the host's root.
func bindHostSys(path string) error {
	err := unix.Mount("/sys", path, "", unix.MS_BIND|unix.MS_REC, "")
	if err == nil {
		err = unix.MountSetattr(unix.AT_FDCWD, path, unix.AT_RECURSIVE, &unix.MountAttr{
			Attr_set:    unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC,
			Propagation: unix.MS_PRIVATE,
		})
	}
	if err == unix.ENOSYS {
		err = fmt.Errorf("it cannot be made read-only before Linux 5.12: %w", err)
	}
	if err != nil {
		return fmt.Errorf("mount the host's /sys: %w", err)
	}
	return nil
}

func maskSys(sys string) error {
	for _, name := range sysMasked {
		err := mountTmpfs(filepath.Join(sys, name), 0, 0o755, harmless|unix.MS_RDONLY, "")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("mask /sys/%s: %w", name, err)
		}
	}
	return nil
}

// Unmount unmounts and removes the shared mounts, also if they are incomplete or do not exist.
func (s SharedMountSpec) Unmount() error {
	for _, dir := range s.Paths().all() {
		if err := unmountTree(dir); err != nil {
			return err
		}
	}
	return nil
}

// unmountTree unmounts path with all that is mounted below it, and removes it.
func unmountTree(path string) error {
	err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH)
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmount %s: %w", path, err)
	}
	return RemoveTree(path)
}
