package volumes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// HostPathType states what a path of the host must be, with Kubernetes' values.
type HostPathType string

const (
	HostPathAny               HostPathType = ""                  // anything; a missing path becomes a directory
	HostPathDirectory         HostPathType = "Directory"         //
	HostPathDirectoryOrCreate HostPathType = "DirectoryOrCreate" // made 0755 with its parents
	HostPathFile              HostPathType = "File"              // a regular file
	HostPathFileOrCreate      HostPathType = "FileOrCreate"      // made 0644; its parent must exist
	HostPathSocket            HostPathType = "Socket"
	HostPathCharDevice        HostPathType = "CharDevice"
	HostPathBlockDevice       HostPathType = "BlockDevice"
)

// hostPathWants contains for each type the file type and its name in the kubelet's message
// (pkg/volume/hostpath/host_path.go).
var hostPathWants = map[HostPathType]struct {
	mode uint32
	name string
}{
	HostPathDirectory:         {unix.S_IFDIR, "a directory"},
	HostPathDirectoryOrCreate: {unix.S_IFDIR, "a directory"},
	HostPathFile:              {unix.S_IFREG, "a file"},
	HostPathFileOrCreate:      {unix.S_IFREG, "a file"},
	HostPathSocket:            {unix.S_IFSOCK, "a socket file"},
	HostPathCharDevice:        {unix.S_IFCHR, "a character device"},
	HostPathBlockDevice:       {unix.S_IFBLK, "a block device"},
}

// OpenHostPath opens a path of the host, by O_PATH, and makes it first if its type requires that.
// host is where MountHost has mounted the host's files, "/" without that. It follows symbolic
// links. The open file is the checked file: it can be bind-mounted even if the path
// changes. Without a type a missing path becomes a directory, as in containerd and CRI-O. A file of
// the wrong type gives the kubelet's message.
func OpenHostPath(host, path string, kind HostPathType) (*os.File, error) {
	want, checked := hostPathWants[kind]
	if !checked && kind != HostPathAny {
		return nil, fmt.Errorf("%s is an invalid volume type", kind)
	}
	f, err := openOfHost(host, path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeHostPath(path, kind); err == nil {
			f, err = openOfHost(host, path)
		}
	}
	if checked && errors.Is(err, fs.ErrNotExist) {
		hint := "" // podrun's addition
		if kind == HostPathDirectory || kind == HostPathFile {
			hint = fmt.Sprintf(" (it does not exist: type %sOrCreate creates it)", kind)
		}
		return nil, fmt.Errorf("hostPath type check failed: %s is not %s%s", path, want.name, hint)
	}
	if err != nil {
		return nil, fmt.Errorf("open hostPath: %w", err)
	}
	if checked {
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err != nil {
			f.Close()
			return nil, fmt.Errorf("look at hostPath %s: %w", path, err)
		}
		if st.Mode&unix.S_IFMT != want.mode {
			f.Close()
			return nil, fmt.Errorf("hostPath type check failed: %s is not %s", path, want.name)
		}
	}
	return f, nil
}

func openOfHost(host, path string) (*os.File, error) {
	top, err := openPath(host)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	f, err := openResolved(top, path, unix.O_PATH, unix.RESOLVE_IN_ROOT)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return f, nil
}

// makeHostPath makes the file if the type allows it; otherwise it returns the error that the path
// does not exist.
func makeHostPath(path string, kind HostPathType) error {
	switch kind {
	case HostPathAny, HostPathDirectoryOrCreate:
		return makePublic(path)
	case HostPathFileOrCreate:
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if errors.Is(err, fs.ErrExist) {
			return nil // another process has made it
		}
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("make %s: its directory does not exist", path)
		}
		if err != nil {
			return err
		}
		return errors.Join(f.Chmod(0o644), f.Close())
	}
	return fs.ErrNotExist
}

// openPath opens a file of any type without reading it or blocking.
func openPath(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// makePublic makes a directory with its parents. The umask does not apply to the last one.
func makePublic(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	return os.Chmod(path, 0o755)
}
