package treetar

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// How says what becomes of a stream's files.
type How struct {
	// UID and GID own what is made, unless Owners says that the stream's do.
	UID, GID int
	Owners   bool
	// Plain gives files and directories ordinary permissions instead of the stream's.
	Plain bool
	// Skipped is told of what is left out, and of owners that cannot be had.
	Skipped func(string)
}

// Unpack brings a stream of one thing to a path: into it, if it is a directory's, else
// under this name, as cp does. Whole says that the stream is somebody's own with any
// number of things, which must have a directory to go to.
func (r *Root) Unpack(ctx context.Context, in io.Reader, to string, whole bool, how How) error {
	is, err := r.IsDir(to)
	if err != nil {
		return err
	}
	u := &unpacking{root: r, how: how, in: tar.NewReader(&until{ctx, in}), to: to}
	if !is {
		if whole || strings.HasSuffix(to, "/") {
			return fmt.Errorf("%s is no directory", to)
		}
		u.to, u.rename = or(path.Dir(to), "."), path.Base(to)
		if is, err = r.IsDir(u.to); err == nil && !is {
			err = fmt.Errorf("there is no directory %s", u.to)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(u.all(), u.close())
}

type unpacking struct {
	root   *Root
	how    How
	in     *tar.Reader
	to     string
	rename string // instead of the first element of every name; "" for none
	strict []strictDir
}

// strictDir is a directory that its owner may not write to, once all is there.
type strictDir struct {
	fd   int
	mode uint32
}

func (u *unpacking) all() error {
	for {
		h, err := u.in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the stream: %w", err)
		}
		name, err := u.place(h.Name)
		if err != nil {
			return err
		}
		if err := u.entry(h, name); err != nil {
			return fmt.Errorf("make %s: %w", name, err)
		}
	}
}

// place is where an entry goes, below to.
func (u *unpacking) place(name string) (string, error) {
	name = strings.TrimLeft(name, "/")
	clean := path.Clean(name)
	if !filepath.IsLocal(clean) {
		return "", fmt.Errorf("the stream has %q, which leads out of the directory", name)
	}
	if u.rename == "" {
		return clean, nil
	}
	if name == "." || strings.HasPrefix(name, "./") { // what is in a directory, without its name
		return path.Join(u.rename, clean), nil
	}
	_, rest, _ := strings.Cut(clean, "/")
	return path.Join(u.rename, rest), nil
}

func (u *unpacking) entry(h *tar.Header, name string) error {
	if name == "." {
		return nil // the directory that is there
	}
	dir, err := u.root.parent(u.below(path.Dir(name)))
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	base := path.Base(name)
	switch h.Typeflag {
	case tar.TypeDir:
		return u.directory(dir, name, h)
	case tar.TypeReg:
		return u.file(dir, base, h)
	case tar.TypeSymlink:
		if u.root.own() && !staysBelow(name, h.Linkname) {
			u.how.Skipped(fmt.Sprintf("%s: a link to %s, which is not among what is copied", name, h.Linkname))
			return nil
		}
		return u.replace(dir, base, func(name string) error { return u.symlink(dir, name, h) })
	case tar.TypeLink:
		return u.link(dir, base, h)
	case tar.TypeXGlobalHeader:
		return nil
	}
	u.how.Skipped(name + ": neither a file nor a directory nor a link")
	return nil
}

// below is a name as the root has it.
func (u *unpacking) below(name string) string {
	if name == "." {
		return u.to
	}
	return strings.TrimSuffix(u.to, "/") + "/" + name
}

func (u *unpacking) directory(dir int, name string, h *tar.Header) error {
	base := path.Base(name)
	err := unix.Mkdirat(dir, base, 0o700)
	if err == unix.EEXIST {
		is, err := u.root.IsDir(u.below(name))
		if err == nil && !is {
			err = errors.New("something else is there")
		}
		return err
	}
	if err != nil {
		return err
	}
	fd, err := unix.Openat(dir, base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	mode := u.mode(h)
	if err = u.chown(fd, h); err == nil {
		err = unix.Fchmod(fd, mode|0o700)
	}
	if err == nil && mode&0o700 != 0o700 && len(u.strict) < maxDepth {
		u.strict = append(u.strict, strictDir{fd, mode})
		return nil
	}
	unix.Close(fd)
	return err
}

// close gives directories their permissions at last.
func (u *unpacking) close() (err error) {
	for _, d := range u.strict {
		err = errors.Join(err, unix.Fchmod(d.fd, d.mode))
		unix.Close(d.fd)
	}
	return err
}
