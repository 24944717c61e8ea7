package volumes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/report"
)

// ProbeOverlay checks whether this kernel, and the file system of dir, can hold root file systems:
// it mounts one in dir and replaces a directory in it, which uses every feature that overlayfs may
// lack. The error contains the hint.
func ProbeOverlay(dir string) (err error) {
	tmp, err := os.MkdirTemp(dir, "probe-")
	if err != nil {
		return fmt.Errorf("try overlayfs: %w", err)
	}
	fs := filepath.Join(tmp, "fs")
	defer func() { err = errors.Join(err, UnmountRootfs(fs), RemoveTree(tmp)) }()

	layer := filepath.Join(tmp, "layer")
	for _, sub := range []string{"d/old", "e/old"} {
		if err := os.MkdirAll(filepath.Join(layer, sub), 0o755); err != nil {
			return fmt.Errorf("try overlayfs: %w", err)
		}
	}
	root, err := MountRootfs(fs, []string{layer}, false, "")
	if err != nil {
		return err
	}
	if err := replaceDirs(root); err != nil {
		return explainOverlay(dir, fmt.Errorf("replace a directory on overlayfs in %s: %w", dir, err))
	}
	return nil
}

// replaceDirs needs whiteouts (character devices 0/0), opaque directories (user extended
// attributes) and a readdir that returns types.
func replaceDirs(root string) error {
	d, e := filepath.Join(root, "d"), filepath.Join(root, "e")
	for _, step := range []error{
		os.RemoveAll(d), os.Mkdir(d, 0o755), // must become opaque, otherwise d/old reappears
		os.RemoveAll(e), // must become a whiteout, otherwise e is listed
	} {
		if step != nil {
			return step
		}
	}
	top, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	sub, err := os.ReadDir(d)
	if err != nil {
		return err
	}
	if len(top) != 1 || len(sub) != 0 {
		return fmt.Errorf("the removed file still exists: %w", unix.EOPNOTSUPP)
	}
	return nil
}

// explainOverlay adds the hint to an error of overlayfs in dir.
func explainOverlay(dir string, err error) error {
	var hint string
	switch {
	case errors.Is(err, unix.ENODEV):
		hint = "load the kernel's overlay module: modprobe overlay"
	case errors.Is(err, unix.EPERM):
		hint = "overlayfs in a user namespace needs Linux 5.11 or newer, and no security module that forbids it; this is Linux " + release()
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EIO):
		hint = fmt.Sprintf("keep podrun's data on ext4, xfs (ftype=1) or btrfs by setting XDG_DATA_HOME; %s is on %s", dir, fsType(dir))
	default:
		return err
	}
	return &report.Error{Class: report.Failure, Hint: hint, Err: err}
}

func release() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}

func fsType(path string) string {
	fs, err := host.StatFS(path)
	if err != nil {
		return "an unknown file system"
	}
	return fs.Kind
}
