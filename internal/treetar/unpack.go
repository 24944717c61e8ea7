package treetar

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Options control how a stream's files are made.
type Options struct {
	// UID and GID own the files, unless the owners of the stream are kept.
	UID, GID int
	Owners   bool
	// Plain gives files and directories ordinary permissions instead of the stream's.
	Plain bool
	// Changes means that the stream is a difference (PackChanges): a whiteout removes a file or a directory, a file takes
	// the place of a directory, and the other way round, and a file that exists keeps its owner. The path is made if it
	// does not exist.
	Changes bool
	// Skipped is called for entries that are left out, and for owners that cannot be set.
	Skipped func(string)
}

// Unpack unpacks a stream with one file or one directory to a path: into it, if it is a
// directory, otherwise under this name, as cp does. userStream means that the user has made the
// stream: it has any number of files, and the path must be a directory.
func (r *Root) Unpack(ctx context.Context, in io.Reader, to string, userStream bool, how Options) error {
	is, err := r.IsDir(to)
	if err != nil {
		return err
	}
	u := &unpacker{root: r, how: how, in: tar.NewReader(&ctxReader{ctx, in}), to: to}
	if !is && !how.Changes {
		if userStream || strings.HasSuffix(to, "/") {
			return fmt.Errorf("%s is not a directory", to)
		}
		u.to, u.rename = firstNonEmpty(path.Dir(to), "."), path.Base(to)
		if is, err = r.IsDir(u.to); err == nil && !is {
			err = fmt.Errorf("directory %s does not exist", u.to)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(u.all(), u.close())
}

type unpacker struct {
	root   *Root
	how    Options
	in     *tar.Reader
	to     string
	rename string // replaces the first element of every name; "" for none
	strict []strictDir
	former *unix.Stat_t // with Changes: the file that is being replaced
}

// strictDir is a directory whose final permissions forbid its owner to write; they are set at the
// end.
type strictDir struct {
	fd   int
	mode uint32
}

func (u *unpacker) all() error {
	for {
		h, err := u.in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the stream: %w", err)
		}
		name, err := u.destination(h.Name)
		if err != nil {
			return err
		}
		if err := u.entry(h, name); err != nil {
			return fmt.Errorf("make %s: %w", name, err)
		}
	}
}

// destination returns where an entry goes, below to.
func (u *unpacker) destination(name string) (string, error) {
	name = strings.TrimLeft(name, "/")
	clean := path.Clean(name)
	if !filepath.IsLocal(clean) {
		return "", fmt.Errorf("the stream has %q, which leads out of the directory", name)
	}
	if u.rename == "" {
		return clean, nil
	}
	if name == "." || strings.HasPrefix(name, "./") { // the content of a directory, without its name
		return path.Join(u.rename, clean), nil
	}
	_, rest, _ := strings.Cut(clean, "/")
	return path.Join(u.rename, rest), nil
}

func (u *unpacker) entry(h *tar.Header, name string) error {
	if name == "." {
		return nil // the existing directory
	}
	dir, err := u.root.openOrMakeDir(u.rootPath(path.Dir(name)))
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	base := path.Base(name)
	if removed, is := strings.CutPrefix(base, Whiteout); is && u.how.Changes {
		return removeAt(dir, removed, 0)
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return u.directory(dir, name, h)
	case tar.TypeReg:
		return u.file(dir, base, h)
	case tar.TypeSymlink:
		if u.root.isOwn() && !staysBelow(name, h.Linkname) {
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

// rootPath converts a name to a path in the root.
func (u *unpacker) rootPath(name string) string {
	if name == "." {
		return u.to
	}
	return strings.TrimSuffix(u.to, "/") + "/" + name
}

func (u *unpacker) directory(dir int, name string, h *tar.Header) error {
	base := path.Base(name)
	err := unix.Mkdirat(dir, base, 0o700)
	if err == unix.EEXIST {
		is, err := u.root.IsDir(u.rootPath(name))
		switch {
		case err != nil || is:
			return err
		case !u.how.Changes:
			return errors.New("another file exists at this path")
		}
		if err := removeAt(dir, base, 0); err != nil {
			return err
		}
		return u.directory(dir, name, h)
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

// close sets the final permissions of directories.
func (u *unpacker) close() (err error) {
	for _, d := range u.strict {
		err = errors.Join(err, unix.Fchmod(d.fd, d.mode))
		unix.Close(d.fd)
	}
	return err
}

func (u *unpacker) file(dir int, base string, h *tar.Header) error {
	return u.replace(dir, base, func(name string) error {
		fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), base)
		_, err = io.Copy(f, u.in)
		if err == nil {
			err = u.chown(fd, h)
		}
		if err == nil {
			err = unix.Fchmod(fd, u.mode(h))
		}
		if err == nil && !u.how.Plain {
			t := unix.NsecToTimeval(h.ModTime.UnixNano())
			err = unix.Futimes(fd, []unix.Timeval{t, t})
		}
		return errors.Join(err, f.Close())
	})
}

func (u *unpacker) symlink(dir int, name string, h *tar.Header) error {
	if err := unix.Symlinkat(h.Linkname, dir, name); err != nil {
		return err
	}
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return fmt.Errorf("it was replaced meanwhile: %w", err)
	}
	return u.setOwner(h, func(uid, gid int) error { return unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH) })
}

// link makes a hard link to an earlier entry of the stream.
func (u *unpacker) link(dir int, base string, h *tar.Header) error {
	target, err := u.destination(h.Linkname)
	if err != nil {
		return err
	}
	from, err := u.root.openPath(u.rootPath(path.Dir(target)), unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(from)
	return u.replace(dir, base, func(name string) error {
		return unix.Linkat(from, path.Base(target), dir, name, 0)
	})
}

// tempPrefix begins the name of a file until it is complete.
const tempPrefix = ".podrun-cp-"

// replace replaces the file of a name by the file that fill makes, in one step, so that no reader
// finds a partial file.
func (u *unpacker) replace(dir int, base string, fill func(name string) error) error {
	name := tempPrefix + strconv.FormatUint(rand.Uint64(), 36)
	if u.former = nil; u.how.Changes {
		var st unix.Stat_t
		if unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
			u.former = &st
		}
	}
	err := fill(name)
	if err == nil && u.former != nil && u.former.Mode&unix.S_IFMT == unix.S_IFDIR {
		err = removeAt(dir, base, 0)
	}
	if err == nil {
		err = unix.Renameat(dir, name, dir, base)
	}
	if err != nil {
		unix.Unlinkat(dir, name, 0)
	}
	switch err {
	case unix.EISDIR, unix.ENOTEMPTY, unix.EEXIST:
		return errors.New("a directory is there")
	case unix.EBUSY:
		return errMounted
	}
	return err
}

// removeAt removes a file, or a directory with everything in it, without following links. What is mounted there stays, and
// is an error. A missing file is none.
func removeAt(dir int, base string, depth int) error {
	switch err := unix.Unlinkat(dir, base, 0); err {
	case nil, unix.ENOENT:
		return nil
	case unix.EISDIR, unix.EPERM: // the second is POSIX'
	case unix.EBUSY:
		return errMounted
	default:
		return err
	}
	fd, err := unix.Openat(dir, base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), base)
	defer f.Close()
	var above, st unix.Stat_t
	switch err := errors.Join(unix.Fstat(dir, &above), unix.Fstat(fd, &st)); {
	case err != nil:
		return err
	case above.Dev != st.Dev:
		return errMounted
	case depth == maxDepth:
		return fmt.Errorf("directories are more than %d deep", maxDepth)
	}
	names, err := f.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := removeAt(fd, name, depth+1); err != nil {
			return err
		}
	}
	return unix.Unlinkat(dir, base, unix.AT_REMOVEDIR)
}

var errMounted = errors.New("it is mounted, and cannot be replaced")

// mode returns an entry's permissions. In a tree of ours a foreign entry gets no set-id bits.
func (u *unpacker) mode(h *tar.Header) uint32 {
	mode := uint32(h.Mode) & 0o7777
	if u.root.isOwn() {
		mode &= 0o777
	}
	if u.how.Plain {
		plain := uint32(0o644)
		if h.Typeflag == tar.TypeDir || mode&0o111 != 0 {
			plain = 0o755
		}
		return plain
	}
	return mode
}

func (u *unpacker) chown(fd int, h *tar.Header) error {
	return u.setOwner(h, func(uid, gid int) error { return unix.Fchown(fd, uid, gid) })
}

// setOwner sets the owner of a new file. In a tree of our own this process stays the owner.
func (u *unpacker) setOwner(h *tar.Header, to func(uid, gid int) error) error {
	switch {
	case u.root.isOwn():
		return nil
	case u.former != nil:
		return to(int(u.former.Uid), int(u.former.Gid))
	}
	uid, gid := u.how.UID, u.how.GID
	if u.how.Owners {
		uid, gid = h.Uid, h.Gid
	}
	err := error(unix.EINVAL)
	if owner, group := u.root.toHostID(uid), u.root.toHostID(gid); owner >= 0 && group >= 0 {
		err = to(owner, group)
	}
	if err == unix.EINVAL {
		u.how.Skipped(fmt.Sprintf("%s: the owner %d:%d is not among the ids of this pod", h.Name, uid, gid))
		return nil
	}
	return err
}

// staysBelow reports whether a link leads to a path below the directory that name is below, through
// any other such links: it first goes up, at most to that directory, and then only down.
func staysBelow(name, target string) bool {
	if path.IsAbs(target) || target == "" {
		return false
	}
	up, going := strings.Count(path.Clean(name), "/"), true
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part == ".." && !going:
			return false
		case part == "..":
			if up--; up < 0 {
				return false
			}
		case part != "." && part != "":
			going = false
		}
	}
	return true
}
