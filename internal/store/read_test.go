package store

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// readFile returns what os.ReadFile does, for files of each size around its buffer's, and for files of /proc.
func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, size := range []int{0, 1, 511, 512, 513, 70_000} {
		want := bytes.Repeat([]byte{'x'}, size)
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := readFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: read %d, %v", size, len(got), err)
		}
	}
	want, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := readFile("/proc/self/maps"); err != nil || len(got) < len(want)/2 || got[len(got)-1] != '\n' {
		t.Errorf("/proc/self/maps: read %d, %v, want about %d", len(got), err, len(want))
	}
	var failed *os.PathError
	if _, err := readFile(path + "-none"); !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &failed) || failed.Path != path+"-none" {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := readFile(t.TempDir()); err == nil {
		t.Error("a directory is no error")
	}
}
