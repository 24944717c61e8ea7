package layer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRemoveTree removes more entries than one read of a directory returns, deep trees, and links, but not
// the links' targets.
func TestRemoveTree(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside")
	tree := filepath.Join(dir, "tree")
	deep := filepath.Join(tree, strings.Repeat("d/", 300))
	for _, path := range []string{outside, deep} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "file"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 1500 {
		path := filepath.Join(tree, fmt.Sprint(i))
		if err := errors.Join(os.Mkdir(path, 0o755), os.WriteFile(path+".file", nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(outside, filepath.Join(tree, "link")), removeTree(unix.AT_FDCWD, tree), removeTree(unix.AT_FDCWD, tree)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(tree); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the tree: %v", err)
	}
	if _, err := os.Stat(filepath.Join(outside, "file")); err != nil {
		t.Error(err)
	}
}
