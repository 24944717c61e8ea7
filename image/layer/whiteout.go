package layer

import (
	"archive/tar"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// The names in a layer's tar that delete files of lower layers:
// https://github.com/opencontainers/image-spec/blob/main/layer.md#whiteouts
const (
	whiteoutPrefix = ".wh."
	whiteoutMeta   = ".wh..wh." // the prefix of aufs' own files, except for:
	whiteoutOpaque = ".wh..wh..opq"
)

// overlayOpaque is the attribute of an opaque directory in an overlay mounted with userxattr
// (Documentation/filesystems/overlayfs.rst).
const overlayOpaque = "user.overlay.opaque"

// whiteouts converts the deletions of a layer into overlayfs' form. In any order they apply to lower layers
// only. So they are collected while the layer is unpacked, and made when the rest is there.
type whiteouts struct {
	deleted map[string]bool
	opaque  map[string]bool
}

// convert is an archive.ConvertWhiteout: it prevents that deletions are unpacked as files.
func (w *whiteouts) convert(_ *tar.Header, path string) (bool, error) {
	dir, base := filepath.Split(path)
	switch {
	case base == whiteoutOpaque:
		w.opaque[filepath.Clean(dir)] = true
	case strings.HasPrefix(base, whiteoutMeta):
	case strings.HasPrefix(base, whiteoutPrefix):
		w.deleted[filepath.Join(dir, strings.TrimPrefix(base, whiteoutPrefix))] = true
	default:
		return true, nil
	}
	return false, nil
}

// apply makes the whiteouts. A directory that the layer deletes and makes again becomes opaque; any other
// new file hides the old one by itself. apply reports whether the root itself is opaque, which overlayfs
// cannot express.
func (w *whiteouts) apply() (opaqueRoot bool, err error) {
	for path := range w.deleted {
		st, err := os.Lstat(path)
		if err != nil && !isNotExist(err) {
			return false, fmt.Errorf("make whiteout: %w", err)
		}
		if err == nil {
			delete(w.deleted, path)
			if st.IsDir() {
				w.opaque[path] = true
			}
		}
	}
	for path := range w.deleted {
		if w.hidden(path) {
			continue
		}
		err := preserveTimes(filepath.Dir(path), func() error { return unix.Mknod(path, unix.S_IFCHR, 0) })
		if err != nil && !isNotExist(err) {
			return false, fmt.Errorf("make whiteout %s: %w", path, err)
		}
	}
	for dir := range w.opaque {
		if dir == "/" {
			continue
		}
		if err := unix.Lsetxattr(dir, overlayOpaque, []byte("y"), 0); err != nil && !isNotExist(err) {
			return false, fmt.Errorf("mark directory %s opaque: %w", dir, err)
		}
	}
	return w.opaque["/"], nil
}

// hidden reports whether path lies in an opaque directory, where nothing is left to delete. Overlayfs would
// list a whiteout there.
func (w *whiteouts) hidden(path string) bool {
	for path != "/" {
		path = filepath.Dir(path)
		if w.opaque[path] {
			return true
		}
	}
	return false
}

// isNotExist reports whether a later entry of the layer replaced the path or a directory above it, and with
// it the deletion.
func isNotExist(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) }

// preserveTimes restores the times of a directory after do made a file in it.
func preserveTimes(dir string, do func() error) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, dir, []unix.Timespec{st.Atim, st.Mtim}, unix.AT_SYMLINK_NOFOLLOW)
}
