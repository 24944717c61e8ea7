package volumes

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// OpenedByGroup is the error for a file that the calling process may open only as a member of one
// of its supplementary groups.
type OpenedByGroup struct{ Path string }

func (e *OpenedByGroup) Error() string {
	return fmt.Sprintf("%s is accessible to this user only through a supplementary group", e.Path)
}

// CheckGroups returns an *OpenedByGroup if access of the calling process to an open file, or to a
// directory above it, depends on a supplementary group. host is as for OpenHostPath. access(2) is called
// for each right, because group numbers cannot be compared: in a user namespace all groups from outside
// appear as the same number.
func CheckGroups(host string, f *os.File) error {
	path, err := os.Readlink(descriptor(f))
	if err != nil {
		return fmt.Errorf("find the path of a volume: %w", err)
	}
	shown := func(p string) string { return filepath.Join("/", strings.TrimPrefix(p, host)) }
	by, err := byGroup(descriptor(f), unix.R_OK|unix.W_OK|unix.X_OK)
	if err != nil {
		return fmt.Errorf("find the owner of %s: %w", shown(path), err)
	}
	if by {
		return &OpenedByGroup{shown(path)}
	}
	for dir := filepath.Dir(path); len(dir) > len(host); dir = filepath.Dir(dir) {
		if by, err = byGroup(dir, unix.X_OK); err != nil {
			return fmt.Errorf("find the owner of %s: %w", shown(dir), err)
		}
		if by {
			return &OpenedByGroup{shown(dir)}
		}
	}
	return nil
}

// IsOpenedByGroup reports whether CheckGroups returns an error for a path. The result is false for a path that
// cannot be opened.
func IsOpenedByGroup(path string) bool {
	f, err := openPath(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return CheckGroups("/", f) != nil
}

func descriptor(f *os.File) string { return fmt.Sprintf("/proc/thread-self/fd/%d", f.Fd()) }

// byGroup reports whether the calling process has any of the rights to a file only because of a
// supplementary group. Its real IDs equal its effective ones, so access(2) suffices; faccessat2(2) may be
// missing or forbidden.
func byGroup(path string, rights uint32) (bool, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return false, err
	}
	if int(st.Uid) == unix.Geteuid() || namedUser(path) {
		return false, nil
	}
	without := st.Mode // its low bits: the rights without supplementary groups
	if int(st.Gid) == unix.Getegid() {
		without |= st.Mode >> 3
	}
	for right := uint32(unix.X_OK); right <= unix.R_OK; right <<= 1 {
		if rights&right != 0 && without&right == 0 && unix.Access(path, right) == nil {
			return true, nil
		}
	}
	return false, nil
}

// namedUser reports whether an access control list names the calling user (acl(5); the format is in
// linux/posix_acl_xattr.h). The kernel then does not check groups.
func namedUser(path string) bool {
	const header, entry, aclUser = 4, 8, 2
	list := make([]byte, 1<<12)
	n, err := unix.Getxattr(path, "system.posix_acl_access", list)
	if err != nil { // most files have none
		return false
	}
	for offset := header; offset+entry <= n; offset += entry {
		e := list[offset : offset+entry]
		if binary.LittleEndian.Uint16(e) == aclUser && int(binary.LittleEndian.Uint32(e[4:])) == unix.Geteuid() {
			return true
		}
	}
	return false
}
