package volumes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/undo"
)

// Sandbox is where a pod's shared mounts are made.
type Sandbox struct {
	Dir          string // a directory of the pod's own; made if missing
	NetNS, IPCNS string // the pod's namespaces, as /proc/1/ns/net
}

// Templates are mounts that containers bind recursively.
type Templates struct {
	Dev string // for /dev, with /dev/shm and /dev/mqueue in it; /dev/pts is empty
	Sys string // for /sys: read-only, of the pod's network namespace, secrets masked
	Shm string // for /dev/shm, where Dev is not used
}

// shmSize is Docker's and containerd's default for /dev/shm.
const shmSize = 64 << 20

// devSize bounds what can be written into /dev, as Docker does.
const devSize = 64 << 20

const (
	devTemplate = "dev"
	sysTemplate = "sys"
	shmTemplate = "shm"
)

// MountTemplates makes the pod's templates below Dir. What a killed run left
// there is taken down first.
func (s Sandbox) MountTemplates() (_ Templates, err error) {
	if err := s.Unmount(); err != nil {
		return Templates{}, err
	}
	var u undo.Stack
	defer func() { err = errors.Join(err, u.Undo()) }()
	u.Push("take down templates", s.Unmount)

	t := Templates{
		Dev: filepath.Join(s.Dir, devTemplate),
		Sys: filepath.Join(s.Dir, sysTemplate),
		Shm: filepath.Join(s.Dir, shmTemplate),
	}
	for _, dir := range []string{t.Dev, t.Sys, t.Shm} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return Templates{}, fmt.Errorf("make templates: %w", err)
		}
	}
	if err := mountTmpfs(t.Shm, shmSize, 0o1777, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC); err != nil {
		return Templates{}, fmt.Errorf("mount shared memory: %w", err)
	}
	if err := makeDev(t.Dev, t.Shm, s.IPCNS); err != nil {
		return Templates{}, fmt.Errorf("make /dev: %w", err)
	}
	if err := makeSys(t.Sys, s.NetNS); err != nil {
		return Templates{}, fmt.Errorf("make /sys: %w", err)
	}
	u.Release()
	return t, nil
}

func makeDev(dev, shm, ipcNS string) error {
	if err := mountTmpfs(dev, devSize, 0o755, unix.MS_NOSUID); err != nil {
		return err
	}
	for _, name := range []string{"null", "zero", "full", "tty", "random", "urandom"} {
		target := filepath.Join(dev, name)
		f, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY, 0o666)
		if err != nil {
			return err
		}
		f.Close()
		if err := unix.Mount("/dev/"+name, target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind /dev/%s: %w", name, err)
		}
	}
	for name, target := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx",
	} {
		if err := os.Symlink(target, filepath.Join(dev, name)); err != nil {
			return err
		}
	}
	for _, name := range []string{"pts", "shm", "mqueue"} {
		if err := os.Mkdir(filepath.Join(dev, name), 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount(shm, filepath.Join(dev, "shm"), "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind shared memory: %w", err)
	}
	return nsthread.Do(func() error {
		return unix.Mount("mqueue", filepath.Join(dev, "mqueue"), "mqueue", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	}, ipcNS)
}

func makeSys(sys, netNS string) error {
	const flags = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	err := nsthread.Do(func() error {
		return unix.Mount("sysfs", sys, "sysfs", flags, "")
	}, netNS)
	if err != nil {
		return err
	}
	for _, name := range []string{"firmware", "devices/virtual/powercap"} {
		target := filepath.Join(sys, name)
		if _, err := os.Lstat(target); err != nil {
			continue
		}
		if err := mountTmpfs(target, 0, 0o755, flags); err != nil {
			return fmt.Errorf("mask %s: %w", name, err)
		}
	}
	return nil
}

// Unmount takes the templates down and removes them.
func (s Sandbox) Unmount() error {
	for _, name := range []string{devTemplate, sysTemplate, shmTemplate} {
		dir := filepath.Join(s.Dir, name)
		if err := unix.Unmount(dir, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("unmount %s: %w", dir, err)
		}
		if err := RemoveTree(dir); err != nil {
			return err
		}
	}
	return nil
}
