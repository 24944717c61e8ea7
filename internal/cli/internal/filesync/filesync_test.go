package filesync

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/manifest/compose/api"
	"github.com/podrun/podrun/internal/store"
)

func TestFilter(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".dockerignore"), []byte("# files\n\n/build\nlogs/*\n!logs/keep\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := newFilter(api.SyncRule{Path: dir, Ignore: []string{"node_modules/", "**/*.tmp"}})
	if err != nil {
		t.Fatal(err)
	}
	var skipped []string
	names := []string{"a.go", "build", "sub/build", "logs/x", "logs/keep", "node_modules", "x.tmp", "sub/x.tmp", ".git", ".gitignore", "a.go~", ".a.go.swp", ".wh.a", "4913"}
	for _, name := range names {
		if f.skips(name, false) {
			skipped = append(skipped, name)
		}
	}
	if want := "build logs/x node_modules x.tmp sub/x.tmp .git a.go~ .a.go.swp .wh.a 4913"; strings.Join(skipped, " ") != want {
		t.Errorf("skipped: %v", skipped)
	}
	if f, err = newFilter(api.SyncRule{Path: t.TempDir(), Include: []string{"**/*.go"}}); err != nil {
		t.Fatal(err)
	}
	if f.skips("sub", true) || f.skips("sub/a.go", false) || !f.skips("sub/a.js", false) {
		t.Error("include")
	}
}

func TestNewRules(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "real/src"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	rules, err := NewRules(store.Pod{}, []api.SyncRule{{Path: "link/src", Target: "/app/"}, {Path: dir, Action: "restart"}}, dir)
	if err != nil || rules[0].Path != filepath.Join(dir, "real/src") || rules[0].Target != "/app" || rules[1].Path != dir {
		t.Errorf("%v %+v", err, rules)
	}
	for _, bad := range []api.SyncRule{{Path: "missing"}, {Path: "real", Ignore: []string{"[a"}}} {
		if _, err := NewRules(store.Pod{}, slices.Insert([]api.SyncRule{}, 0, bad), dir); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}
