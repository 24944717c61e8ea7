package volumes

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// labelled is the options of a mount whose files all have an SELinux label, whatever they
// had; of "" none. User namespaces may say so of tmpfs, ramfs, devpts and overlayfs
// (selinux_set_mnt_opts in security/selinux/hooks.c).
func labelled(options, label string) string {
	if label == "" {
		return options
	}
	return options + `,context="` + label + `"` // categories have commas
}

// labelName is the attribute of a file with its label.
const labelName = "security.selinux"

// Relabel gives everything in a volume an SELinux label; "" changes nothing. It follows no
// link and enters no mount. Files that are not ours to change are left, and counted.
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
	path := fmt.Sprintf("/proc/self/fd/%d", fd) // of an open link it leads to the link
	if hasLabel(path, label) {
		return true, nil
	}
	err = unix.Setxattr(path, labelName, []byte(label), 0)
	if errors.Is(err, unix.ENOTSUP) { // all of the file system have one label, by its mount or the policy
		return true, nil
	}
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EROFS) {
		return false, nil
	}
	return err == nil, err
}

// LabelPipe gives a pipe an SELinux label. It has that of who made it, with all of his
// categories, and containers, which have few, could use it but not open it anew, as
// /dev/stdout. What is no pipe keeps its label, and so do pipes of others, or where the
// policy has it so.
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

// labelQueues gives message queues, which have their directory's, an SELinux label: no
// option of their mount does. A policy that forbids it costs a pod its queues, no more.
func labelQueues(dir, label string) error {
	_, err := Relabel(dir, label)
	if errors.Is(err, unix.EACCES) {
		return nil
	}
	return err
}
