package image

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/image/layer"
	"github.com/podrun/podrun/internal/reexec"
)

// tree is a directory as seen from inside the user namespace: a line for every path below it.
type tree map[string]string

// testEntryPoints run like pods: as root of the user's namespace.
func testEntryPoints() map[string]func([]string) int {
	show := func(t tree, err error) int {
		if err == nil {
			err = json.NewEncoder(os.Stdout).Encode(t)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	return map[string]func([]string) int{
		"_tree":    func(args []string) int { return show(readTree(args[0])) },
		"_overlay": func(args []string) int { return show(overlayTree(args[0], args[1:])) },
		"_escape":  func(args []string) int { return show(escapeEntry(args)) },
		"_load":    loadEntry,
		"_pull":    pullEntry,
		"_import":  importEntry,
		"_full":    fullEntry,
	}
}

// inUserns runs a test entry point and returns the tree that it prints.
func inUserns(t testing.TB, name string, args ...string) tree {
	t.Helper()
	cmd := reexec.Command(reexec.Spec{Name: name, Args: args, Userns: true})
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v: %s", name, args, err, stderr.String())
	}
	var tr tree
	if err := json.Unmarshal(out, &tr); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return tr
}

// merged returns a container's view of layers.
func merged(t testing.TB, layers []string) tree {
	t.Helper()
	return inUserns(t, "_overlay", append([]string{tempDir(t)}, layers...)...)
}

// tempDir returns a directory that is removed even if it has files of other ids.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "image-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := layer.RemoveTrees([]string{dir}); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func overlayTree(dir string, layers []string) (tree, error) {
	for _, sub := range []string{"upper", "work", "empty", "merged"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	lower := []string{}
	for i := len(layers) - 1; i >= 0; i-- {
		lower = append(lower, layers[i])
	}
	lower = append(lower, filepath.Join(dir, "empty"))
	options := fmt.Sprintf("userxattr,lowerdir=%s,upperdir=%s/upper,workdir=%s/work", strings.Join(lower, ":"), dir, dir)
	mnt := filepath.Join(dir, "merged")
	if err := unix.Mount("overlay", mnt, "overlay", unix.MS_NODEV, options); err != nil {
		return nil, fmt.Errorf("mount overlay: %w", err)
	}
	defer unix.Unmount(mnt, unix.MNT_DETACH)
	return readTree(mnt)
}

func readTree(root string) (tree, error) {
	t := tree{}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		t[name], err = describe(path)
		return err
	})
	return t, err
}

// describe returns "type mode uid:gid", then content, target or device, then xattrs.
func describe(path string) (string, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return "", err
	}
	kind := map[uint32]string{
		unix.S_IFREG: "file", unix.S_IFDIR: "dir", unix.S_IFLNK: "link", unix.S_IFCHR: "char",
		unix.S_IFBLK: "block", unix.S_IFIFO: "fifo", unix.S_IFSOCK: "socket",
	}[st.Mode&unix.S_IFMT]
	line := fmt.Sprintf("%s %04o %d:%d", kind, st.Mode&0o7777, st.Uid, st.Gid)
	switch kind {
	case "file":
		b, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		if len(b) > 64 {
			line += fmt.Sprintf(" %d bytes", len(b))
		} else {
			line += " " + string(b)
		}
	case "link":
		target, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		line = "link " + target
	case "char", "block":
		line += fmt.Sprintf(" %d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev))
	}
	xattrs, err := xattrNames(path)
	if len(xattrs) > 0 {
		line += " " + strings.Join(xattrs, ",")
	}
	return line, err
}

func xattrNames(path string) ([]string, error) {
	buf := make([]byte, 4096)
	n, err := unix.Llistxattr(path, buf)
	if errors.Is(err, unix.ENOTSUP) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names := strings.FieldsFunc(string(buf[:n]), func(r rune) bool { return r == 0 })
	sort.Strings(names)
	return names, nil
}
