package dirwatch

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTree(t *testing.T) {
	for _, polls := range []bool{false, true} {
		root := t.TempDir()
		run := func(do func(name string) error, names ...string) {
			t.Helper()
			for _, name := range names {
				if err := do(filepath.Join(root, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		write := func(name string) error {
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				return err
			}
			return os.WriteFile(name, []byte(strings.Repeat("x", len(name))), 0o600)
		}
		run(write, "a", "d/b", "d/deep/c", "skipped/x")
		w := WatchTree(root, func(name string, _ bool) bool { return name == "skipped" || strings.HasSuffix(name, "~") })
		if polls {
			w.notify.Close()
			w.notify = nil
		}
		if d := cmp.Diff([]string{"a", "d", "d/b", "d/deep", "d/deep/c"}, w.All()); d != "" {
			t.Errorf("all: %s", d)
		}
		ctx, cancel := context.WithCancel(t.Context())
		step := func(what string, want Changes) {
			t.Helper()
			var got Changes
			add := func(list *[]string, more []string) {
				*list = append(*list, more...)
				slices.Sort(*list)
				*list = slices.Compact(*list)
			}
			for len(got.Written)+len(got.Removed) < len(want.Written)+len(want.Removed) { // a slow machine sees them in parts
				c := w.Next(ctx)
				add(&got.Written, c.Written)
				add(&got.Removed, c.Removed)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("polls: %v: %s:\n%s", polls, what, d)
			}
		}
		run(write, "skipped/y", "a~", "z/new/f")
		step("new directories", Changes{Written: []string{"z", "z/new", "z/new/f"}})
		run(func(name string) error { return os.WriteFile(name, nil, 0o600) }, "z/new/f")
		step("a file in a new directory", Changes{Written: []string{"z/new/f"}})
		run(func(name string) error { return os.Chmod(name, 0o700) }, "d/b")
		step("permissions", Changes{Written: []string{"d/b"}})
		run(os.RemoveAll, "a", "d")
		step("removed", Changes{Removed: []string{"a", "d"}})
		run(func(name string) error { return os.Rename(name, filepath.Join(root, "d")) }, "z")
		step("renamed", Changes{Written: []string{"d", "d/new", "d/new/f"}, Removed: []string{"z"}})
		run(os.RemoveAll, "d/new")
		run(write, "d/new")
		step("a file in the place of a directory", Changes{Written: []string{"d/new"}})
		cancel()
		if c := w.Next(ctx); len(c.Written)+len(c.Removed) > 0 {
			t.Errorf("at the end: %v", c)
		}
		w.Close()
	}
}
