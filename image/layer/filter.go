package layer

import (
	"archive/tar"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/podrun/podrun/image/records"
)

// Limits bounds one unpacked layer, so that a decompression bomb is stopped early.
type Limits struct {
	Bytes   int64 // of regular files, holes included
	Entries int
}

// stream returns the limit of the tar stream itself: file contents plus headers.
func (l Limits) stream() int64 { return l.Bytes + int64(l.Entries)*2048 }

// dirs returns the limit of directories, the entries with the highest cost: memory of the unpacker, and time
// to make and to remove. Common layers have about one for ten files.
func (l Limits) dirs() int { return l.Entries / 10 }

// idMap is the content of /proc/self/uid_map or gid_map: the ids that exist here.
type idMap []idRange

type idRange struct{ first, count int64 }

// has reports whether an id can own a file here.
func (m idMap) has(id int) bool {
	for _, r := range m {
		if int64(id) >= r.first && int64(id) < r.first+r.count {
			return true
		}
	}
	return false
}

// parseIDMap parses lines of the form "inside outside count".
func parseIDMap(text string) (idMap, error) {
	var m idMap
	for line := range strings.Lines(text) {
		var r idRange
		var outside int64
		if _, err := fmt.Sscan(line, &r.first, &outside, &r.count); err != nil {
			return nil, fmt.Errorf("read id map: %w", err)
		}
		m = append(m, r)
	}
	return m, nil
}

// filter checks every entry of a layer before it is unpacked, reduces it to what is allowed here, and
// counts.
type filter struct {
	limits     Limits
	uids, gids idMap

	count records.LayerStats
	dirs  int
	root  *tar.Header // the entry of "/" itself, or nil
}

const xattrPrefix = "SCHILY.xattr."

// entry is an archive.Filter. hdr.Name is clean.
func (f *filter) entry(hdr *tar.Header) (bool, error) {
	f.count.Entries++
	if f.count.Entries > f.limits.Entries {
		return false, fmt.Errorf("more than %d entries", f.limits.Entries)
	}
	switch hdr.Typeflag {
	case tar.TypeXGlobalHeader:
		return false, nil
	case tar.TypeChar, tar.TypeBlock:
		f.count.Devices++
		return false, nil
	case tar.TypeDir:
		if f.dirs++; f.dirs > f.limits.dirs() {
			return false, fmt.Errorf("more than %d directories", f.limits.dirs())
		}
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		hdr.Typeflag = tar.TypeReg // they are all alike once read
		if hdr.Size > f.limits.Bytes-f.count.Bytes {
			return false, fmt.Errorf("the layer exceeds %[2]d bytes at file %[1]s: %[3]s", hdr.Name, f.limits.Bytes, noSpaceText)
		}
		f.count.Bytes += hdr.Size
	}
	squashed := f.squash(hdr)
	for key := range hdr.PAXRecords {
		if name, ok := strings.CutPrefix(key, xattrPrefix); ok && !keepXattr(name, squashed) {
			delete(hdr.PAXRecords, key)
		}
	}
	if hdr.Typeflag == tar.TypeDir && filepath.Clean("/"+hdr.Name) == "/" {
		f.root = hdr
	}
	return true, nil
}

// squash changes an owner or group that does not exist here to 0, and removes the mode bits and attributes
// that would run with 0's rights.
func (f *filter) squash(hdr *tar.Header) bool {
	squashed := false
	if !f.uids.has(hdr.Uid) {
		hdr.Uid, squashed = 0, true
	}
	if !f.gids.has(hdr.Gid) {
		hdr.Gid, squashed = 0, true
	}
	if squashed {
		f.count.UnmappedOwners++
		if hdr.Typeflag == tar.TypeReg || hdr.Typeflag == tar.TypeLink { // a link's entry sets the mode too
			hdr.Mode &^= 0o6000
		}
	}
	return squashed
}

// keepXattr reports whether a layer may set an extended attribute.
func keepXattr(name string, squashed bool) bool {
	if name == "security.capability" {
		return !squashed
	}
	return strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "user.overlay.")
}
