// Package treetar carries files into and out of a directory tree as a stream of tar, and
// never leaves the tree, whatever links there are, whoever changes them meanwhile, and
// whatever the stream says.
//
// Every path is resolved by the kernel in one step (openat2), and what was found is used
// by its descriptor only: between looking and using nothing can be put in its place.
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

// Root is a directory that paths do not lead out of.
type Root struct {
	dir     int
	resolve uint64

	first, count int // of its owners, if there are more than its own
}

// nobodyID is who owns what belongs to none of a tree's owners, as the kernel has it.
const nobodyID = 65534

// MapIDs says that the users and groups of the tree are count ids from first on, which a
// stream numbers from 0 on.
func (r *Root) MapIDs(first, count int) { r.first, r.count = first, count }

// toStreamID is what a stream calls an owner of a file.
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

// toHostID is who that is to this process; -1 for one whom the tree does not have.
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

// OpenForeign is the root of a tree that is somebody else's, as a container's: links are
// followed as those in there see them, an absolute one from the directory on.
func OpenForeign(dir string) (*Root, error) {
	return open(dir, unix.RESOLVE_IN_ROOT|unix.RESOLVE_NO_MAGICLINKS)
}

// OpenOwn is a directory in a tree of our own, into which something foreign is brought: no
// link below it is followed.
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

// PathErrorReason is the reason in an error about a file that the message names already.
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

// Close lets go of the directory.
func (r *Root) Close() { unix.Close(r.dir) }

// isOwn says whether the tree is ours: what is foreign is made harmless there.
func (r *Root) isOwn() bool { return r.resolve&unix.RESOLVE_BENEATH != 0 }

// openPath opens a path for its descriptor alone.
func (r *Root) openPath(name string, flags int) (int, error) {
	if r.isOwn() {
		if name = strings.TrimPrefix(path.Clean("/"+name), "/"); name == "" {
			name = "."
		}
	}
	how := &unix.OpenHow{Flags: uint64(unix.O_PATH | unix.O_CLOEXEC | flags), Resolve: r.resolve}
	for try := 0; ; try++ {
		fd, err := unix.Openat2(r.dir, name, how)
		if (err == unix.EAGAIN || err == unix.EINTR) && try < 1000 { // something was renamed meanwhile
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

// IsDir says whether a path is a directory's. One that is not there is none.
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

// openParent opens the directory that a path is in, and makes those that are missing.
func (r *Root) openParent(dir string) (int, error) {
	fd, err := r.openPath(dir, unix.O_DIRECTORY)
	if err == nil || !errors.Is(err, unix.ENOENT) {
		return fd, err
	}
	up, name := path.Split(strings.TrimSuffix(dir, "/"))
	if name == "" || name == "." || name == ".." {
		return -1, err
	}
	above, err := r.openParent(firstNonEmpty(up, "."))
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
