package volumes

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mkdir(t testing.TB, path string) {
	t.Helper()
	must(t, os.MkdirAll(path, 0o755))
}

func write(t testing.TB, path, content string) {
	t.Helper()
	mkdir(t, filepath.Dir(path))
	must(t, os.WriteFile(path, []byte(content), 0o644))
}

func wantFile(t testing.TB, path, content string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil || string(b) != content {
		t.Errorf("%s has %q (%v), want %q", path, b, err, content)
	}
}

func wantMissing(t testing.TB, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("lstat %s: %v, want not exist", path, err)
	}
}

// mountsBelow lists the mount points in dir, newest first.
func mountsBelow(dir string) ([]string, error) {
	all, err := mountPoints()
	if err != nil {
		return nil, err
	}
	var points []string
	for _, p := range all {
		if strings.HasPrefix(p, dir+"/") {
			points = append(points, p)
		}
	}
	slices.Reverse(points)
	return points, nil
}

func unmountBelow(dir string) error {
	points, err := mountsBelow(dir)
	for _, p := range points {
		if uerr := unix.Unmount(p, 0); uerr != nil {
			return uerr
		}
	}
	return err
}
