package systemd

import (
	"os"
	"path/filepath"
	"testing"
)

// TestActiveGenerator: the first directory decides; a link to /dev/null and an empty file mask a generator.
func TestActiveGenerator(t *testing.T) {
	const name = "user-generators/podman-user-generator"
	dir := t.TempDir()
	dirs := []string{filepath.Join(dir, "etc"), filepath.Join(dir, "usr")}
	want := func(what, path string) {
		t.Helper()
		if got := activeGenerator(dirs, name); got != path {
			t.Errorf("%s: %q, want %q", what, got, path)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	etc, usr := filepath.Join(dirs[0], name), filepath.Join(dirs[1], name)
	must(os.MkdirAll(filepath.Dir(etc), 0o755))
	must(os.MkdirAll(filepath.Dir(usr), 0o755))
	want("none", "")
	must(os.WriteFile(usr, []byte("#!"), 0o755))
	want("podman's", usr)
	must(os.Symlink("/dev/null", etc))
	want("masked by a link", "")
	must(os.Remove(etc))
	must(os.WriteFile(etc, nil, 0o644))
	want("masked by an empty file", "")
	must(os.WriteFile(etc, []byte("#!"), 0o755))
	want("replaced", etc)
}
