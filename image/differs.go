package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func missing(err error) string {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return "it is not there"
	}
	return fmt.Sprintf("it cannot be read: %v", err)
}

// differs says how a file is not what its header says, but for its content, and whether it
// is only owner or mode.
func differs(hdr *tar.Header) (why string, meta bool) {
	name := "/" + inArchive(hdr.Name)
	var st unix.Stat_t
	if err := unix.Lstat(name, &st); err != nil {
		return missing(err), false
	}
	want := map[byte]uint32{
		tar.TypeReg: unix.S_IFREG, tar.TypeDir: unix.S_IFDIR, tar.TypeSymlink: unix.S_IFLNK, tar.TypeFifo: unix.S_IFIFO,
	}[hdr.Typeflag]
	switch {
	case hdr.Typeflag == tar.TypeLink:
		var other unix.Stat_t
		if err := unix.Lstat("/"+inArchive(hdr.Linkname), &other); err != nil || other.Ino != st.Ino {
			return "it is no link to " + inArchive(hdr.Linkname) + " any more", false
		}
		want = st.Mode & unix.S_IFMT
	case want == 0:
		return "", false
	case st.Mode&unix.S_IFMT != want:
		return "it is a file of another type", false
	case hdr.Typeflag == tar.TypeReg && st.Size != hdr.Size:
		return fmt.Sprintf("it has %d bytes instead of %d", st.Size, hdr.Size), false
	case hdr.Typeflag == tar.TypeSymlink:
		if to, err := os.Readlink(name); err != nil || to != hdr.Linkname {
			return "it leads elsewhere", false
		}
	}
	switch {
	case int(st.Uid) != hdr.Uid || int(st.Gid) != hdr.Gid:
		return fmt.Sprintf("it belongs to %d:%d instead of %d:%d", st.Uid, st.Gid, hdr.Uid, hdr.Gid), true
	case want != unix.S_IFLNK && st.Mode&0o7777 != uint32(hdr.Mode)&0o7777:
		return fmt.Sprintf("its mode is %o instead of %o", st.Mode&0o7777, hdr.Mode&0o7777), true
	}
	return "", false
}
