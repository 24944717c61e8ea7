package volumes

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// RemoveTree removes path and everything below it, as rm -rf does; a missing path is not an error.
// It follows no symbolic link and enters no mount: a mount below path is an error, and its content
// is safe. It needs three descriptors and no recursion, however deep a container has nested its
// directories. As root of the user namespace it does not depend on the modes of directories;
// overlayfs leaves some with mode 000.
func RemoveTree(path string) error {
	if err := removeTree(path); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}

func removeTree(path string) error {
	path = filepath.Clean(path)
	parent, err := openDir(unix.AT_FDCWD, filepath.Dir(path), 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer parent.Close()
	return removeFrom(parent, filepath.Base(path), func(top *os.File) error {
		// Directories in top are emptied one after another; their subdirectories are moved up into
		// top and wait there for their turn.
		r := remover{top: top}
		return r.empty(top, r.removeFromTop)
	})
}

// removeFrom removes an entry of parent; empty removes the contents of a directory.
func removeFrom(parent *os.File, name string, empty func(dir *os.File) error) error {
	isDir, err := removeOne(parent, name)
	if !isDir || err != nil {
		return err
	}
	dir, err := openBelow(parent, name)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := empty(dir); err != nil {
		return err
	}
	return unix.Unlinkat(int(parent.Fd()), name, unix.AT_REMOVEDIR)
}

// remover empties one tree.
type remover struct {
	top   *os.File
	moved uint64 // directories moved into top so far
}

// batch limits how many names of a directory are in memory.
const batch = 1024

// empty calls remove with every name in dir until none is left. If nothing of a whole batch could
// be removed it returns the errors.
func (r *remover) empty(dir *os.File, remove func(dir *os.File, name string) error) error {
	for {
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return err
		}
		names, err := dir.Readdirnames(batch)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var errs []error
		for _, name := range names {
			if err := remove(dir, name); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
			}
		}
		if len(errs) == len(names) {
			return errors.Join(errs...)
		}
	}
}

func (r *remover) removeFromTop(top *os.File, name string) error {
	return removeFrom(top, name, func(dir *os.File) error { return r.empty(dir, r.moveUp) })
}

// moveUp removes a file or an empty directory, and moves any other directory into top.
func (r *remover) moveUp(dir *os.File, name string) error {
	isDir, err := removeOne(dir, name)
	if !isDir || err != nil {
		return err
	}
	for {
		r.moved++
		to := ".rm" + strconv.FormatUint(r.moved, 10)
		err := unix.Renameat2(int(dir.Fd()), name, int(r.top.Fd()), to, unix.RENAME_NOREPLACE)
		if !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
}

// removeOne removes a file or an empty directory; for any other directory it returns isDir.
func removeOne(dir *os.File, name string) (isDir bool, err error) {
	err = unix.Unlinkat(int(dir.Fd()), name, 0)
	if errors.Is(err, unix.EISDIR) {
		err = unix.Unlinkat(int(dir.Fd()), name, unix.AT_REMOVEDIR)
		if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
			return true, nil
		}
	}
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	return false, err
}

// openBelow opens a directory in dir, unless it has become a link or a mount point since removeOne
// saw it.
func openBelow(dir *os.File, name string) (*os.File, error) {
	return openDir(int(dir.Fd()), name, unix.RESOLVE_NO_XDEV|unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_BENEATH)
}

func openDir(dirFD int, name string, resolve uint64) (*os.File, error) {
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: resolve}
	for {
		fd, err := unix.Openat2(dirFD, name, &how)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return os.NewFile(uintptr(fd), name), nil
	}
}
