package volumes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// notDevices are entries of /dev that are not hardware: every container has an instance of its own.
var notDevices = []string{"/dev/pts", "/dev/shm", "/dev/mqueue", "/dev/ptmx", "/dev/console", "/dev/.lxc", "/dev/.udev"}

// HostDevices lists the device files below /dev that the calling process may open, except those
// that every container has anyway.
func HostDevices() ([]string, error) {
	var found []string
	err := filepath.WalkDir("/dev", func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission):
			return nil // it no longer exists, or access is denied
		case err != nil:
			return err
		case slices.Contains(notDevices, path):
			if e.IsDir() {
				return fs.SkipDir
			}
		case e.Type()&fs.ModeDevice != 0 && !slices.Contains(devNodes, filepath.Base(path)):
			if unix.Access(path, unix.R_OK) == nil || unix.Access(path, unix.W_OK) == nil {
				found = append(found, path)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the host's devices: %w", err)
	}
	return found, nil
}

// AddDevice bind-mounts a device file into a container's /dev that MountDev has made. target is its
// path in the container, below /dev.
func AddDevice(dev, source, target string) error {
	rel, err := filepath.Rel("/dev", target)
	if err != nil || !filepath.IsLocal(rel) || rel == "." {
		return fmt.Errorf("add device %s: %s is not below /dev", source, target)
	}
	path := filepath.Join(dev, rel)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("add device %s: %w", source, err)
	}
	if err := touch(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("add device %s: %w", source, err)
	}
	if err := unix.Mount(source, path, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind device %s: %w", source, err)
	}
	return nil
}
