package store

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A pod has a plan only if it has a manifest, and nothing is left of one that cannot be written.
func TestWriteFilesInOrder(t *testing.T) {
	for _, name := range []string{"first", "second"} { // that cannot be replaced
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, name, "full"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := writeFiles(dir, file{"first", []byte("1")}, file{"second", []byte("2")}); err == nil {
			t.Fatalf("%s was replaced", name)
		}
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range list {
			names = append(names, e.Name())
		}
		want := []string{"first"}
		if name == "second" {
			want = []string{"first", "second"}
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s cannot be replaced: there are %v, want %v", name, names, want)
		}
	}
	dir := t.TempDir()
	if err := writeFiles(dir, file{"first", []byte("1")}, file{"second", []byte("2")}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"first": "1", "second": "2"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}
