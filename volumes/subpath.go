package volumes

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// errEscape means that a path leads out of its volume.
var errEscape = errors.New("it leads out of the volume")

// OpenSubPath opens sub in a volume, by O_PATH: a file of any type, or a directory, which is made
// with its parents if it is missing, with the volume's mode (kubelet: SafeMakeDir in
// pkg/volume/util/subpath). It follows symbolic links inside the volume; one that leads out of it,
// or is absolute, gives errEscape. Concurrent changes of the volume cannot make it open anything
// else: the kernel resolves the path beneath the volume (CVE-2017-1002101, CVE-2021-25741).
func OpenSubPath(volume *os.File, sub string) (*os.File, error) {
	f, err := openSubPath(volume, sub)
	if err != nil {
		return nil, fmt.Errorf("open subPath %s: %w", sub, err)
	}
	return f, nil
}

func openSubPath(volume *os.File, sub string) (*os.File, error) {
	if filepath.IsAbs(sub) {
		return nil, errEscape
	}
	for _, part := range strings.Split(sub, "/") {
		if part == ".." {
			return nil, errEscape
		}
	}
	sub = path.Clean(sub)
	f, err := openBeneath(volume, sub, unix.O_PATH)
	if !errors.Is(err, unix.ENOENT) {
		return f, err
	}
	if err := makeBeneath(volume, sub); err != nil {
		return nil, err
	}
	return openBeneath(volume, sub, unix.O_PATH)
}

// makeBeneath makes the missing directories of a path.
func makeBeneath(volume *os.File, sub string) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(volume.Fd()), &st); err != nil {
		return err
	}
	mode := st.Mode & 0o7777
	reached := "."
	for _, part := range strings.Split(sub, "/") {
		parent, err := openBeneath(volume, reached, unix.O_PATH|unix.O_DIRECTORY)
		if err != nil {
			return err
		}
		err = makeIn(parent, part, mode)
		parent.Close()
		if err != nil {
			return err
		}
		reached = path.Join(reached, part)
	}
	return nil
}

// makeIn makes a directory with a mode, whatever the umask and the parent's group. An existing one
// is unchanged.
func makeIn(parent *os.File, name string, mode uint32) error {
	err := unix.Mkdirat(int(parent.Fd()), name, 0o700)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	if err != nil {
		return err
	}
	dir, err := openBelow(parent, name)
	if err != nil {
		return err
	}
	defer dir.Close()
	return unix.Fchmod(int(dir.Fd()), mode)
}

// maxTries limits how often a path is resolved again because its parts are being moved.
const maxTries = 1000

// openBeneath opens a path below dir and never leaves dir.
func openBeneath(dir *os.File, name string, flags uint64) (*os.File, error) {
	return openResolved(dir, name, flags, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_MAGICLINKS)
}

func openResolved(dir *os.File, name string, flags, resolve uint64) (*os.File, error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: resolve}
	for range maxTries {
		fd, err := unix.Openat2(int(dir.Fd()), name, &how)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case errors.Is(err, unix.EXDEV):
			return nil, errEscape
		case err != nil:
			return nil, err
		}
		return os.NewFile(uintptr(fd), name), nil
	}
	return nil, fmt.Errorf("it is being changed all the time: %w", unix.EAGAIN)
}
