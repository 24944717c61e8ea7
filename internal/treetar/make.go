package treetar

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func (u *unpacking) file(dir int, base string, h *tar.Header) error {
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

func (u *unpacking) symlink(dir int, name string, h *tar.Header) error {
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
	return u.give(h, func(uid, gid int) error { return unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH) })
}

// link makes another name of what the stream has brought before.
func (u *unpacking) link(dir int, base string, h *tar.Header) error {
	target, err := u.place(h.Linkname)
	if err != nil {
		return err
	}
	from, err := u.root.at(u.below(path.Dir(target)), unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(from)
	return u.replace(dir, base, func(name string) error {
		return unix.Linkat(from, path.Base(target), dir, name, 0)
	})
}

// unfinished begins what a file is called until it is whole.
const unfinished = ".podrun-cp-"

// replace puts what fill makes in the place of what has the name, in one step: nobody
// finds half of it.
func (u *unpacking) replace(dir int, base string, fill func(name string) error) error {
	name := unfinished + strconv.FormatUint(rand.Uint64(), 36)
	err := fill(name)
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
		return errors.New("it is mounted, and cannot be replaced")
	}
	return err
}

// mode is what an entry may be used for. What is foreign gets no rights of its owner's in
// a tree of ours.
func (u *unpacking) mode(h *tar.Header) uint32 {
	mode := uint32(h.Mode) & 0o7777
	if u.root.own() {
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

func (u *unpacking) chown(fd int, h *tar.Header) error {
	return u.give(h, func(uid, gid int) error { return unix.Fchown(fd, uid, gid) })
}

// give makes somebody the owner of what is made. In a tree of our own that is who makes it.
func (u *unpacking) give(h *tar.Header, to func(uid, gid int) error) error {
	if u.root.own() {
		return nil
	}
	uid, gid := u.how.UID, u.how.GID
	if u.how.Owners {
		uid, gid = h.Uid, h.Gid
	}
	err := error(unix.EINVAL)
	if owner, group := u.root.outside(uid), u.root.outside(gid); owner >= 0 && group >= 0 {
		err = to(owner, group)
	}
	if err == unix.EINVAL {
		u.how.Skipped(fmt.Sprintf("%s: the owner %d:%d is not among the ids of this pod", h.Name, uid, gid))
		return nil
	}
	return err
}

// staysBelow says whether a link leads to something below the directory that name is
// below, through whatever other such links: it goes up first, no further than to the
// directory, and then down only.
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
