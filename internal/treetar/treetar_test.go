package treetar

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// tree makes files: a name with a final / is a directory, a text that begins with -> a link.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		place := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, is := strings.CutPrefix(text, "->"); is {
			err = os.Symlink(target, place)
		} else if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(place, 0o755)
		} else {
			err = os.WriteFile(place, []byte(text), 0o640)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// list returns the content of a directory in the format of tree.
func list(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		switch {
		case d.IsDir():
			files[name+"/"] = ""
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			files[name] = "->" + target
			return err
		default:
			b, err := os.ReadFile(path)
			files[name] = string(b)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func rooted(t *testing.T, make func(string) (*Root, error), dir string) *Root {
	t.Helper()
	r, err := make(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func how(skipped *[]string) Options {
	return Options{UID: os.Getuid(), GID: os.Getgid(), Skipped: func(s string) { *skipped = append(*skipped, s) }}
}

// carry packs the tree at from and unpacks it to to.
func carry(t *testing.T, from *Root, name, as string, to *Root, dest string) ([]string, error) {
	t.Helper()
	var stream bytes.Buffer
	var skipped []string
	if err := from.Pack(context.Background(), &stream, name, as, func(s string) { skipped = append(skipped, s) }); err != nil {
		return skipped, err
	}
	return skipped, to.Unpack(context.Background(), &stream, dest, false, how(&skipped))
}

// Unpack works as cp does: into an existing directory, otherwise under the name; links in the path
// lead where they lead inside the tree.
func TestRoundTrip(t *testing.T) {
	source := map[string]string{"d/a": "text", "d/sub/b": "more", "d/sub/link": "->../a", "d/empty/": "", "run/x": "of run", "var/run": "->/run", "up": "->../../../../run"}
	for _, tt := range []struct {
		name, from, as, to string
		there, want        map[string]string
	}{
		{"a file into a directory", "d/a", "a", "t", map[string]string{"t/": ""}, map[string]string{"t/": "", "t/a": "text"}},
		{"a file under a name", "d/a", "a", "new", nil, map[string]string{"new": "text"}},
		{"over a file", "d/a", "a", "old", map[string]string{"old": "o"}, map[string]string{"old": "text"}},
		{"over a link, which is replaced", "d/a", "a", "t/a", map[string]string{"t/a": "->../safe", "safe": "s"}, map[string]string{"t/": "", "t/a": "text", "safe": "s"}},
		{"a directory under a name", "d/sub", "sub", "new", nil, map[string]string{"new/": "", "new/b": "more", "new/link": "->../a"}},
		{"a directory into one", "d/sub", "sub", "t", map[string]string{"t/": ""}, map[string]string{"t/": "", "t/sub/": "", "t/sub/b": "more", "t/sub/link": "->../a"}},
		{"what is in a directory", "d/sub", ".", "t", map[string]string{"t/": ""}, map[string]string{"t/": "", "t/b": "more", "t/link": "->../a"}},
		{"what is in one, under a name", "d/sub", ".", "new", nil, map[string]string{"new/": "", "new/b": "more", "new/link": "->../a"}},
		{"an absolute link in the way", "var/run/x", "x", "new", nil, map[string]string{"new": "of run"}},
		{"a link that would lead out", "up/x", "x", "new", nil, map[string]string{"new": "of run"}},
		{"an absolute link at the destination", "d/a", "a", "/l/a", map[string]string{"l": "->/t", "t/": ""}, map[string]string{"l": "->/t", "t/": "", "t/a": "text"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dest := tree(t, tt.there)
			skipped, err := carry(t, rooted(t, OpenForeign, tree(t, source)), tt.from, tt.as, rooted(t, OpenForeign, dest), tt.to)
			if err != nil || len(skipped) > 0 {
				t.Fatal(err, skipped)
			}
			got := list(t, dest)
			if len(got) != len(tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
			for name, text := range tt.want {
				if have, ok := got[name]; !ok || have != text {
					t.Errorf("%s: %q, want %q", name, have, text)
				}
			}
		})
	}
}

func TestRoundTripFails(t *testing.T) {
	from := rooted(t, OpenForeign, tree(t, map[string]string{"a": "text", "d/a": "text"}))
	to := rooted(t, OpenForeign, tree(t, map[string]string{"file": "f", "t/a/": ""}))
	for _, tt := range []struct{ from, as, to, want string }{
		{"nosuch", "x", ".", "no such file"},
		{"a", "a", "no/such", "directory no does not exist"},
		{"a", "a", "new/", "new/ is not a directory"},
		{"d", "d", "file/x", "not a directory"},
		{"a", "a", "t", "a directory is there"},
		{"d", "d", "file", "another file exists at this path"},
	} {
		if _, err := carry(t, from, tt.from, tt.as, to, tt.to); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s to %s: %v, want %q", tt.from, tt.to, err, tt.want)
		}
	}
}

// Permissions and times are from the stream; set-id bits do not enter a tree of ours.
func TestPermissions(t *testing.T) {
	source := tree(t, map[string]string{"d/run": "x", "d/shut/": ""})
	for name, mode := range map[string]uint32{"d/run": 0o4755, "d/shut": 0o555} {
		if err := unix.Chmod(filepath.Join(source, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		open func(string) (*Root, error)
		how  Options
		want map[string]uint32
	}{
		"another's": {OpenForeign, Options{}, map[string]uint32{"d/run": 0o4755, "d/shut": 0o555}},
		"ours":      {OpenOwn, Options{}, map[string]uint32{"d/run": 0o755, "d/shut": 0o555}},
		"plain":     {OpenForeign, Options{Plain: true}, map[string]uint32{"d/run": 0o755, "d/shut": 0o755}},
	} {
		t.Run(name, func(t *testing.T) {
			var stream bytes.Buffer
			if err := rooted(t, OpenOwn, source).Pack(context.Background(), &stream, "d", "d", func(s string) { t.Error(s) }); err != nil {
				t.Fatal(err)
			}
			dest := t.TempDir()
			tt.how.UID, tt.how.GID, tt.how.Skipped = os.Getuid(), os.Getgid(), func(s string) { t.Error(s) }
			if err := rooted(t, tt.open, dest).Unpack(context.Background(), &stream, ".", false, tt.how); err != nil {
				t.Fatal(err)
			}
			for file, want := range tt.want {
				var st unix.Stat_t
				if err := unix.Stat(filepath.Join(dest, file), &st); err != nil || st.Mode&0o7777 != want {
					t.Errorf("%s: %#o %v, want %#o", file, st.Mode&0o7777, err, want)
				}
			}
			os.Chmod(filepath.Join(dest, "d/shut"), 0o755)
		})
	}
}

// TestChanges: a stream of changes makes a tree equal to another one, as far as the stream says.
func TestChanges(t *testing.T) {
	from := tree(t, map[string]string{"new/deep/f": "1", "edited": "2", "was-a-dir": "3", "was-a-file/f": "4", "unchanged": "changed", "link": "->edited"})
	to := tree(t, map[string]string{"edited": "old", "was-a-dir/f": "old", "was-a-file": "old", "unchanged": "same", "gone": "x", "gone-dir/a/b": "x", "app/x": ""})
	var stream bytes.Buffer
	names := []string{"edited", "link", "meanwhile-gone", "new", "new/deep", "new/deep/f", "was-a-dir", "was-a-file", "was-a-file/f"}
	as := func(name string) string { return name }
	source := rooted(t, OpenForeign, from)
	if err := source.PackChanges(t.Context(), &stream, names, []string{"gone", "gone-dir", "never-there"}, as, func(string) {}); err != nil {
		t.Fatal(err)
	}
	how := Options{UID: os.Getuid(), GID: os.Getgid(), Changes: true, Skipped: func(s string) { t.Error(s) }}
	if err := rooted(t, OpenForeign, to).Unpack(t.Context(), bytes.NewReader(stream.Bytes()), "/", true, how); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"new/deep/f": "1", "edited": "2", "was-a-dir": "3", "was-a-file/f": "4", "unchanged": "same", "app/x": "", "link": "->edited"}
	got := list(t, to)
	for name := range got {
		if strings.HasSuffix(name, "/") {
			delete(got, name)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if err := rooted(t, OpenForeign, to).Unpack(t.Context(), bytes.NewReader(stream.Bytes()), "/made/for/it", true, how); err != nil {
		t.Errorf("a path that does not exist: %v", err)
	}
}
