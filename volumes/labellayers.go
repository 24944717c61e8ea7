package volumes

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// LabelLayers gives layers (directories) an SELinux label that containers may read and execute
// whatever their categories. The label of an overlay's mount is not enough: the kernel attributes a
// program's mappings to the layer's file, and mprotect checks that file's label; every dynamic
// linker calls mprotect. It skips a layer whose directory has the label: the directory is labelled
// last, and only if all its content is labelled. kept contains the reason for each layer that could
// not be labelled completely; containers may be unable to use these.
func LabelLayers(layers []string, label string) (kept []error, err error) {
	for _, layer := range layers {
		if label == "" || hasLabel(layer, label) {
			continue
		}
		err := labelLayer(layer, label)
		switch {
		case err == nil || errors.Is(err, unix.ENOTSUP): // all files of the file system share one label
		case errors.As(err, new(notOurs)) || errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EINVAL): // the policy forbids it, or lacks the label
			kept = append(kept, fmt.Errorf("label %s as %s: %w", layer, label, err))
		default:
			return kept, fmt.Errorf("label %s as %s: %w", layer, label, err)
		}
	}
	return kept, nil
}

// notOurs is the number of files of a layer that belong to users outside of the pod's user
// namespace.
type notOurs int

func (n notOurs) Error() string {
	return fmt.Sprintf("%d files belong to users that the pod does not have", int(n))
}

func labelLayer(layer, label string) error {
	root, err := openDir(unix.AT_FDCWD, layer, 0)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := takesLabels(root); err != nil {
		return err
	}
	left, err := markLast(root, func(fd int, _ *unix.Stat_t) (bool, error) { return setLabel(fd, label) })
	if err == nil && left > 0 {
		return notOurs(left)
	}
	return err
}

// takesLabels returns an error if no file of a directory's file system can be labelled: then
// visiting each file at every start would be useless.
func takesLabels(dir *os.File) error {
	has := make([]byte, 4096)
	n, err := unix.Fgetxattr(int(dir.Fd()), labelName, has)
	if err == nil {
		err = unix.Fsetxattr(int(dir.Fd()), labelName, has[:n], 0)
	}
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EROFS) {
		return err
	}
	return nil // other errors occur again for each file
}

// markLast is eachFile that skips the volume's own directory unless everything in it could be
// changed.
func markLast(root *os.File, do change) (left int, err error) {
	var mine unix.Stat_t
	if err := unix.Fstat(int(root.Fd()), &mine); err != nil {
		return 0, err
	}
	whole := true
	return eachFile(root, func(fd int, st *unix.Stat_t) (bool, error) {
		if !whole && st.Ino == mine.Ino && st.Dev == mine.Dev {
			return true, nil
		}
		ok, err := do(fd, st)
		whole = whole && ok
		return ok, err
	})
}
