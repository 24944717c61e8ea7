package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// FileSystem is the result of statfs(2).
type FileSystem struct {
	Kind               string // "ext4", "NFS"; "file system type 0x…" for an unlisted type
	Free, Size         uint64 // bytes, for an ordinary user
	FreeFiles, Files   uint64 // inodes; both 0 if there is no fixed number
	NoExec, NoSUID, RO bool
	Remote             bool // may hang, and supports no overlay
	Memory             bool // lost after a restart
}

// StatFS returns the file system that holds path.
func StatFS(path string) (FileSystem, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return FileSystem{}, fmt.Errorf("look at the file system of %s: %w", path, err)
	}
	f := FileSystem{
		Kind: fsKind(int64(st.Type) & 0xffffffff), // 32 bits wide on some machines, and signed
		Free: uint64(st.Bavail) * uint64(st.Bsize), Size: uint64(st.Blocks) * uint64(st.Bsize),
		FreeFiles: uint64(st.Ffree), Files: uint64(st.Files),
		NoExec: st.Flags&unix.ST_NOEXEC != 0, NoSUID: st.Flags&unix.ST_NOSUID != 0, RO: st.Flags&unix.ST_RDONLY != 0,
	}
	switch f.Kind {
	case "NFS", "SMB", "9p", "FUSE":
		f.Remote = true
	case "tmpfs", "ramfs":
		f.Memory = true
	}
	return f, nil
}

// fsKind returns the name of a file system type: those that overlayfs refuses as upper layer, and
// common ones.
func fsKind(magic int64) string {
	switch magic {
	case unix.NFS_SUPER_MAGIC:
		return "NFS"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlayfs"
	case unix.FUSE_SUPER_MAGIC:
		return "FUSE"
	case unix.ECRYPTFS_SUPER_MAGIC:
		return "ecryptfs"
	case unix.V9FS_MAGIC:
		return "9p"
	case unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC:
		return "SMB"
	case unix.MSDOS_SUPER_MAGIC:
		return "FAT"
	case unix.EXFAT_SUPER_MAGIC:
		return "exFAT"
	case unix.F2FS_SUPER_MAGIC:
		return "f2fs"
	case unix.EXT4_SUPER_MAGIC:
		return "ext4"
	case unix.XFS_SUPER_MAGIC:
		return "xfs"
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs"
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.RAMFS_MAGIC:
		return "ramfs"
	}
	return fmt.Sprintf("file system type %#x", magic)
}

// mountOf returns the mount point of the file system that holds path.
func mountOf(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	text, _ := os.ReadFile("/proc/self/mountinfo")
	return mountIn(string(text), path)
}

// DeviceOf returns the device of the file system that holds path, such as /dev/sda1.
func DeviceOf(path string) string {
	mount, device := mountOf(path), ""
	text, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(text)) {
		before, after, ok := strings.Cut(line, " - ")
		f, what := strings.Fields(before), strings.Fields(after)
		if ok && len(f) > 4 && len(what) > 1 && unescapeMount.Replace(f[4]) == mount {
			device = what[1] // the last one lies on top
		}
	}
	return device
}

// unescapeMount decodes a path of mountinfo.
var unescapeMount = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// mountIn returns the longest mount point of a mountinfo text that contains path.
func mountIn(text, path string) string {
	best := "/"
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 6 {
			continue
		}
		mountPoint := unescapeMount.Replace(f[4])
		if len(mountPoint) >= len(best) && (path == mountPoint || strings.HasPrefix(path, mountPoint+"/")) {
			best = mountPoint
		}
	}
	return best
}
