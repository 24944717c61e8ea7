package volumes

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// sameFiles reports whether a directory contains exactly these files.
func sameFiles(dir *os.File, name string, files map[string]File) bool {
	top, err := openBelow(dir, name)
	if err != nil {
		return false
	}
	defer top.Close()
	count := 0
	return sameIn(top, "", files, &count) && count == len(files)
}

func sameIn(dir *os.File, prefix string, files map[string]File, count *int) bool {
	names, err := dir.Readdirnames(-1)
	if err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	for _, name := range names {
		place := path.Join(prefix, name)
		if f, ok := files[place]; ok {
			*count++
			if !sameFile(dir, name, f) {
				return false
			}
			continue
		}
		sub, err := openBelow(dir, name)
		if err != nil {
			return false
		}
		same := sameIn(sub, place, files, count)
		sub.Close()
		if !same {
			return false
		}
	}
	return len(names) > 0 || prefix == ""
}

// sameFile reports whether a file equals want. It ignores the group, and mode bits that were added
// for the group.
func sameFile(dir *os.File, name string, want File) bool {
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(int(dir.Fd()), name, &how)
	if err != nil {
		return false
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size != int64(len(want.Data)) ||
		st.Uid != uint32(want.UID) || st.Mode&0o777&^0o440 != want.Mode&^0o440 {
		return false
	}
	have, err := io.ReadAll(io.LimitReader(f, st.Size+1))
	return err == nil && bytes.Equal(have, want.Data)
}
