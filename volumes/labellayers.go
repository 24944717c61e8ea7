package volumes

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// LabelLayers gives layers (directories) an SELinux label, which containers may read and
// execute whatever their categories. The label of an overlay's mount is not enough: what a
// program has mapped is the layer's file to the kernel, and mprotect asks for its label, which
// every dynamic linker does. A layer that has it is not looked into: its directory comes last,
// and only if all that is in it has the label. Of layers that could not have it whole, kept says
// why; containers may be unable to use these.
func LabelLayers(layers []string, label string) (kept []error, err error) {
	for _, layer := range layers {
		if label == "" || hasLabel(layer, label) {
			continue
		}
		err := labelLayer(layer, label)
		switch {
		case err == nil || errors.Is(err, unix.ENOTSUP): // all of the file system have one label
		case errors.As(err, new(notOurs)) || errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EINVAL): // the policy forbids it, or does not know it
			kept = append(kept, fmt.Errorf("label %s as %s: %w", layer, label, err))
		default:
			return kept, fmt.Errorf("label %s as %s: %w", layer, label, err)
		}
	}
	return kept, nil
}

// notOurs is how many files of a layer belong to users that the pod does not have.
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

// takesLabels fails if no file of a directory's file system can be labelled: then it
// would be in vain to look at each of them, at every start.
func takesLabels(dir *os.File) error {
	has := make([]byte, 4096)
	n, err := unix.Fgetxattr(int(dir.Fd()), labelName, has)
	if err == nil {
		err = unix.Fsetxattr(int(dir.Fd()), labelName, has[:n], 0)
	}
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EROFS) {
		return err
	}
	return nil // what else there is against it, each file says
}

// markLast is eachFile that leaves the volume's own directory alone, unless everything in it
// was ours to change.
func markLast(root *os.File, do change) (left int, err error) {
	var own unix.Stat_t
	if err := unix.Fstat(int(root.Fd()), &own); err != nil {
		return 0, err
	}
	whole := true
	return eachFile(root, func(fd int, st *unix.Stat_t) (bool, error) {
		if !whole && st.Ino == own.Ino && st.Dev == own.Dev {
			return true, nil
		}
		ok, err := do(fd, st)
		whole = whole && ok
		return ok, err
	})
}
