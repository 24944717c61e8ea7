package volumes

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// labelled returns mount options with which all files of the mount have an SELinux label, whatever
// they had; "" adds none. User namespaces may use that for tmpfs, ramfs, devpts and overlayfs
// (selinux_set_mnt_opts in security/selinux/hooks.c).
func labelled(options, label string) string {
	if label == "" {
		return options
	}
	return options + `,context="` + label + `"` // categories have commas
}

// labelName is the extended attribute that contains a file's label.
const labelName = "security.selinux"

// Relabel gives everything in a volume an SELinux label; "" changes nothing. It follows no link and
// enters no mount. It skips and counts files that this process may not change.
func Relabel(volume, label string) (left int, err error) {
	if label == "" {
		return 0, nil
	}
	root, err := openDir(unix.AT_FDCWD, volume, 0)
	if err == nil {
		defer root.Close()
		left, err = eachFile(root, func(fd int, _ *unix.Stat_t) (bool, error) { return setLabel(fd, label) })
	}
	if err != nil {
		return left, fmt.Errorf("label %s as %s: %w", volume, label, err)
	}
	return left, nil
}

func hasLabel(path, label string) bool {
	has := make([]byte, len(label)+1)
	n, err := unix.Getxattr(path, labelName, has)
	return err == nil && strings.TrimRight(string(has[:n]), "\x00") == label
}

func setLabel(fd int, label string) (ok bool, err error) {
	path := fmt.Sprintf("/proc/self/fd/%d", fd) // for an open symbolic link this path leads to the link itself
	if hasLabel(path, label) {
		return true, nil
	}
	err = unix.Setxattr(path, labelName, []byte(label), 0)
	if errors.Is(err, unix.ENOTSUP) { // all files of the file system share one label, from its mount or the policy
		return true, nil
	}
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EROFS) {
		return false, nil
	}
	return err == nil, err
}

// LabelPipe gives a pipe an SELinux label. A pipe inherits its creator's label with all categories;
// containers, which have few, could use such a pipe but not open it again as /dev/stdout. Files
// other than pipes keep their label, and so do pipes of other users, or where the policy demands
// it.
func LabelPipe(f *os.File, label string) error {
	if label == "" {
		return nil
	}
	fd := int(f.Fd())
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return fmt.Errorf("look at a pipe: %w", err)
	}
	if fs.Type != unix.PIPEFS_MAGIC {
		return nil
	}
	err := unix.Fsetxattr(fd, labelName, []byte(label), 0)
	if err == nil || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	return fmt.Errorf("label a pipe %s: %w", label, err)
}

// labelQueues gives message queues an SELinux label through their directory, which they inherit it
// from: their mount has no option for it. If a policy forbids it the pod lacks only its queues.
func labelQueues(dir, label string) error {
	_, err := Relabel(dir, label)
	if errors.Is(err, unix.EACCES) {
		return nil
	}
	return err
}
