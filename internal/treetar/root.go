// Package treetar copies files into and out of a directory tree as a tar stream. It never leaves
// the tree, whatever links it contains, whoever changes them meanwhile, and whatever the stream
// contains.
//
// The kernel resolves every path in one step (openat2), and the result is used only by its
// descriptor: nothing can be swapped between check and use.
package treetar

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// Root is a directory tree that no path leaves.
type Root struct {
	dir     int
	resolve uint64

	first, count int // the range of ids that own its files, see MapIDs; count 0: no mapping
}

// nobodyID is the owner of files that belong to none of a tree's ids, as in the kernel.
const nobodyID = 65534

// MapIDs sets that the users and groups of the tree are count ids from first on, which a stream
// numbers from 0 on.
func (r *Root) MapIDs(first, count int) { r.first, r.count = first, count }

// toStreamID converts an owner of a file to its id in a stream.
func (r *Root) toStreamID(id uint32) int {
	switch n := int(id) - r.first; {
	case r.count == 0:
		return int(id)
	case n < 0 || n >= r.count:
		return nobodyID
	default:
		return n
	}
}

// toHostID converts an id of a stream to the id that this process uses; -1 for an id that the tree does not
// have.
func (r *Root) toHostID(id int) int {
	switch {
	case r.count == 0:
		return id
	case id < 0 || id >= r.count:
		return -1
	default:
		return r.first + id
	}
}

// OpenForeign returns the Root of a foreign tree, such as a container's: links are followed as
// inside the tree, an absolute one from the directory on.
func OpenForeign(dir string) (*Root, error) {
	return open(dir, unix.RESOLVE_IN_ROOT|unix.RESOLVE_NO_MAGICLINKS)
}

// OpenOwn returns the Root of our own directory tree into which foreign files are copied: no link
// leads out of it.
func OpenOwn(dir string) (*Root, error) {
	return open(dir, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
}

func open(dir string, resolve uint64) (*Root, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	return &Root{dir: fd, resolve: resolve}, nil
}

// PathErrorReason returns the reason from an error, for a message that names the file already.
func PathErrorReason(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errNoFile
	}
	if bad := (*os.PathError)(nil); errors.As(err, &bad) {
		return bad.Err
	}
	return err
}

var errNoFile = errors.New("there is no such file")

// Close closes the directory.
func (r *Root) Close() { unix.Close(r.dir) }

// isOwn reports whether the tree is ours: foreign files are made harmless there.
func (r *Root) isOwn() bool { return r.resolve&unix.RESOLVE_BENEATH != 0 }

// openPath opens a path as an O_PATH descriptor.
func (r *Root) openPath(name string, flags int) (int, error) {
	if r.isOwn() {
		if name = strings.TrimPrefix(path.Clean("/"+name), "/"); name == "" {
			name = "."
		}
	}
	how := &unix.OpenHow{Flags: uint64(unix.O_PATH | unix.O_CLOEXEC | flags), Resolve: r.resolve}
	for try := 0; ; try++ {
		fd, err := unix.Openat2(r.dir, name, how)
		if (err == unix.EAGAIN || err == unix.EINTR) && try < 1000 { // a concurrent rename
			continue
		}
		if err == unix.ELOOP && r.isOwn() {
			return -1, fmt.Errorf("%s: a link leads there, which is not followed", name)
		}
		if err != nil {
			return -1, &os.PathError{Op: "find", Path: name, Err: err}
		}
		return fd, nil
	}
}

// IsDir reports whether a path is a directory. A missing path is none.
func (r *Root) IsDir(name string) (bool, error) {
	fd, err := r.openPath(name, 0)
	switch {
	case errors.Is(err, unix.ENOENT):
		return false, nil
	case err != nil:
		return false, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	return st.Mode&unix.S_IFMT == unix.S_IFDIR, err
}

// openOrMakeDir opens a directory and creates it, and those above it, if they are missing.
func (r *Root) openOrMakeDir(dir string) (int, error) {
	fd, err := r.openPath(dir, unix.O_DIRECTORY)
	if err == nil || !errors.Is(err, unix.ENOENT) {
		return fd, err
	}
	up, name := path.Split(strings.TrimSuffix(dir, "/"))
	if name == "" || name == "." || name == ".." {
		return -1, err
	}
	above, err := r.openOrMakeDir(firstNonEmpty(up, "."))
	if err != nil {
		return -1, err
	}
	defer unix.Close(above)
	if err := unix.Mkdirat(above, name, 0o755); err != nil && err != unix.EEXIST {
		return -1, &os.PathError{Op: "make directory", Path: dir, Err: err}
	}
	return r.openPath(dir, unix.O_DIRECTORY)
}

func firstNonEmpty(a, b string) string {
	if a == "" {
		return b
	}
	return a
}
