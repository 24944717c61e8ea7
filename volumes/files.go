package volumes

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// File is one file of a volume that podrun writes itself.
type File struct {
	Data []byte
	Mode uint32 // permission bits
	UID  int    // its owner
}

// Names of the kubelet's layout (pkg/volume/util/atomic_writer.go): a container opens a link to
// ..data/NAME, and ..data is a link to a directory with a time in its name.
const (
	dataLink    = "..data"
	newDataLink = "..data_tmp"
	newLink     = "..link_tmp"
)

const (
	maxFileName = 255
	maxFilePath = 4096
)

// checkFilePath returns an error for a path that a file of a volume cannot have: one that is
// absolute, leads upwards, begins like podrun's own names, or is too long.
func checkFilePath(name string) error {
	parts := strings.Split(name, "/")
	switch {
	case name == "":
		return errors.New("a file's path is empty")
	case path.IsAbs(name):
		return fmt.Errorf("the path %q is not relative", name)
	case len(name) > maxFilePath:
		return fmt.Errorf("the path %.40q… has more than %d characters", name, maxFilePath)
	case strings.HasPrefix(name, ".."):
		return fmt.Errorf("the path %q begins with '..'", name)
	case strings.ContainsRune(name, 0):
		return fmt.Errorf("the path %q has a NUL byte", name)
	case slices.Contains(parts, ".."):
		return fmt.Errorf("the path %q contains '..'", name)
	case slices.ContainsFunc(parts, func(p string) bool { return len(p) > maxFileName }):
		return fmt.Errorf("the path %.40q… has a name of more than %d characters", name, maxFileName)
	}
	return nil
}

// WriteFiles replaces the content of the existing directory dir by files, keyed by relative path, and by
// the empty directories dirs (mount points). A concurrent reader finds all old files or all new ones. If
// group is set, the files get it. The previous files stay readable, without a name, until SweepFiles or
// the next WriteFiles that changes something. It neither follows nor trusts anything in dir: a process
// that can write to dir cannot redirect a write (CVE-2025-9566). Directories, links, and files whose UID
// is 0 belong to root: the id, in this process's user namespace, of the pod's uid 0.
func WriteFiles(dir string, files map[string]File, dirs []string, group *Group, root int) error {
	for _, name := range dirs {
		if err := checkFilePath(name); err != nil {
			return fmt.Errorf("write files to %s: %w", dir, err)
		}
	}
	clean := make(map[string]File, len(files))
	for name, f := range files {
		if err := checkFilePath(name); err != nil {
			return fmt.Errorf("write files to %s: %w", dir, err)
		}
		clean[path.Clean(name)] = f
	}
	if err := writeFiles(dir, clean, dirs, group, root); err != nil {
		return fmt.Errorf("write files to %s: %w", dir, err)
	}
	return nil
}

func writeFiles(path string, files map[string]File, dirs []string, group *Group, root int) error {
	dir, err := openDir(unix.AT_FDCWD, path, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	old := currentFiles(dir)
	if old != "" && sameFiles(dir, old, files) && allLinked(dir, files) {
		return nil
	}
	stamp, err := makeStamped(dir)
	if err != nil {
		return err
	}
	keep := append(topNamesOf(dirs), old)
	if err = fillFiles(dir, stamp, files); err == nil {
		err = makeDirs(dir, stamp, files, dirs)
	}
	if err == nil && root != 0 {
		_, err = eachFile(dir, giveTo(root))
	}
	if err == nil && group != nil {
		_, err = group.Apply(path)
	}
	if err == nil {
		err = link(dir, stamp, newDataLink, dataLink, root)
	}
	if err != nil {
		return errors.Join(err, sweep(dir, keep...))
	}
	for name := range topNames(files) {
		if err := makeVisible(dir, name, root); err != nil {
			return err
		}
	}
	return sweep(dir, append(keep, stamp)...)
}

// SweepFiles removes from dir what WriteFiles has replaced. Call it when processes that were about
// to open an old file can be assumed to have done so.
func SweepFiles(path string, dirs []string) error {
	dir, err := openDir(unix.AT_FDCWD, path, 0)
	if err != nil {
		return fmt.Errorf("clean up %s: %w", path, err)
	}
	defer dir.Close()
	if err := sweep(dir, append(topNamesOf(dirs), currentFiles(dir))...); err != nil {
		return fmt.Errorf("clean up %s: %w", path, err)
	}
	return nil
}

// currentFiles returns the name of the directory that contains the current files; "" if there is
// none.
func currentFiles(dir *os.File) string {
	name := readlinkAt(dir, dataLink)
	if !strings.HasPrefix(name, "..") || strings.ContainsRune(name, '/') || len(name) < 4 {
		return ""
	}
	return name
}

func readlinkAt(dir *os.File, name string) string {
	buf := make([]byte, maxFilePath)
	n, err := unix.Readlinkat(int(dir.Fd()), name, buf)
	if err != nil {
		return ""
	}
	return string(buf[:n])
}

// topNames returns the first elements of the files' paths.
func topNames(files map[string]File) map[string]bool {
	set := map[string]bool{}
	for name := range files {
		set[topName(name)] = true
	}
	return set
}

// topName returns the first element of a path.
func topName(name string) string {
	top, _, _ := strings.Cut(name, "/")
	return top
}

func allLinked(dir *os.File, files map[string]File) bool {
	want := topNames(files)
	for name := range want {
		if readlinkAt(dir, name) != dataLink+"/"+name {
			return false
		}
	}
	return true
}

// makeStamped makes a directory with the time in its name, as inotify watchers of the kubelet's
// volumes expect it.
func makeStamped(dir *os.File) (string, error) {
	now := time.Now().UTC()
	for n := now.Nanosecond(); ; n++ {
		name := now.Format("..2006_01_02_15_04_05.") + strconv.Itoa(n)
		err := unix.Mkdirat(int(dir.Fd()), name, 0o755)
		if errors.Is(err, unix.EEXIST) {
			continue
		}
		return name, err
	}
}

// fillFiles writes the files into a new directory.
func fillFiles(dir *os.File, name string, files map[string]File) error {
	top, err := openBelow(dir, name)
	if err != nil {
		return err
	}
	defer top.Close()
	if err := unix.Fchmod(int(top.Fd()), 0o755); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := fillFile(top, name, files[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// topNamesOf returns the first element of each path.
func topNamesOf(paths []string) []string {
	var list []string
	for _, p := range paths {
		list = append(list, topName(p))
	}
	return list
}

// makeDirs makes the empty directories, either beside the links that a container opens or in the
// target of one of them.
func makeDirs(dir *os.File, stamp string, files map[string]File, dirs []string) error {
	linked := topNames(files)
	for _, name := range dirs {
		top := topName(name)
		root := dir
		if linked[top] {
			var err error
			if root, err = openBelow(dir, stamp); err != nil {
				return err
			}
			defer root.Close()
		}
		made, err := walkTo(root, strings.Split(name, "/"))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		made.Close()
	}
	return nil
}

// walkTo opens a directory below top and makes its missing parts.
func walkTo(top *os.File, parts []string) (*os.File, error) {
	current, err := openBelow(top, ".")
	for _, part := range parts {
		if err == nil {
			err = makeIn(current, part, 0o755)
		}
		var next *os.File
		if err == nil {
			next, err = openBelow(current, part)
		}
		if err != nil {
			break
		}
		current.Close()
		current = next
	}
	if err != nil && current != nil {
		current.Close()
		return nil, err
	}
	return current, err
}

func fillFile(top *os.File, name string, f File) error {
	parts := strings.Split(name, "/")
	parent, err := walkTo(top, parts[:len(parts)-1])
	if err != nil {
		return err
	}
	defer parent.Close()
	fd, err := unix.Openat(int(parent.Fd()), parts[len(parts)-1], unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	out := os.NewFile(uintptr(fd), name)
	_, err = out.Write(f.Data)
	if err == nil && f.UID != 0 {
		err = out.Chown(f.UID, -1)
	}
	if err == nil {
		err = unix.Fchmod(fd, f.Mode)
	}
	return errors.Join(err, out.Close())
}
