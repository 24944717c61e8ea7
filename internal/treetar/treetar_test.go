package treetar

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// tree makes files: a name with / at its end is a directory, a text with -> before it a link.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, is := strings.CutPrefix(text, "->"); is {
			err = os.Symlink(target, at)
		} else if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(at, 0o755)
		} else {
			err = os.WriteFile(at, []byte(text), 0o640)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// list is what is in a directory, as tree takes it.
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

func how(skipped *[]string) How {
	return How{UID: os.Getuid(), GID: os.Getgid(), Skipped: func(s string) { *skipped = append(*skipped, s) }}
}

// carry packs what is at from and unpacks it to to.
func carry(t *testing.T, from *Root, name, as string, to *Root, dest string) ([]string, error) {
	t.Helper()
	var stream bytes.Buffer
	var skipped []string
	if err := from.Pack(context.Background(), &stream, name, as, func(s string) { skipped = append(skipped, s) }); err != nil {
		return skipped, err
	}
	return skipped, to.Unpack(context.Background(), &stream, dest, false, how(&skipped))
}

// As cp does: into a directory that is there, else under the name; links in the way lead
// where they lead inside of the tree.
func TestCarry(t *testing.T) {
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
			skipped, err := carry(t, rooted(t, Inside, tree(t, source)), tt.from, tt.as, rooted(t, Inside, dest), tt.to)
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

func TestCarryFails(t *testing.T) {
	from := rooted(t, Inside, tree(t, map[string]string{"a": "text", "d/a": "text"}))
	to := rooted(t, Inside, tree(t, map[string]string{"file": "f", "t/a/": ""}))
	for _, tt := range []struct{ from, as, to, want string }{
		{"nosuch", "x", ".", "no such file"},
		{"a", "a", "no/such", "there is no directory no"},
		{"a", "a", "new/", "new/ is no directory"},
		{"d", "d", "file/x", "not a directory"},
		{"a", "a", "t", "a directory is there"},
		{"d", "d", "file", "something else is there"},
	} {
		if _, err := carry(t, from, tt.from, tt.as, to, tt.to); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s to %s: %v, want %q", tt.from, tt.to, err, tt.want)
		}
	}
}

// Permissions and times are the stream's; rights of an owner come into no tree of ours.
func TestPermissions(t *testing.T) {
	source := tree(t, map[string]string{"d/run": "x", "d/shut/": ""})
	for name, mode := range map[string]uint32{"d/run": 0o4755, "d/shut": 0o555} {
		if err := unix.Chmod(filepath.Join(source, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		open func(string) (*Root, error)
		how  How
		want map[string]uint32
	}{
		"another's": {Inside, How{}, map[string]uint32{"d/run": 0o4755, "d/shut": 0o555}},
		"ours":      {Below, How{}, map[string]uint32{"d/run": 0o755, "d/shut": 0o555}},
		"plain":     {Inside, How{Plain: true}, map[string]uint32{"d/run": 0o755, "d/shut": 0o755}},
	} {
		t.Run(name, func(t *testing.T) {
			var stream bytes.Buffer
			if err := rooted(t, Below, source).Pack(context.Background(), &stream, "d", "d", func(s string) { t.Error(s) }); err != nil {
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

// hostile are entries of a stream from a container that has its way.
func TestHostileStreams(t *testing.T) {
	file := func(name string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 5, Mode: 0o6777}
	}
	link := func(name, to string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to}
	}
	hard := func(name, to string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeLink, Linkname: to} }
	dir := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755} }
	for name, tt := range map[string]struct {
		entries []tar.Header
		err     string
		skipped int
	}{
		"up":                       {[]tar.Header{file("../canary")}, "leads out", 0},
		"up, later":                {[]tar.Header{file("a/../../canary")}, "leads out", 0},
		"absolute":                 {[]tar.Header{file("/canary")}, "", 0},
		"a link out":               {[]tar.Header{link("l", "../canary"), file("l")}, "", 1},
		"an absolute link":         {[]tar.Header{link("l", "/etc/passwd")}, "", 1},
		"through a link out":       {[]tar.Header{link("l", ".."), file("l/canary")}, "", 1},
		"through a link inside":    {[]tar.Header{dir("d/"), link("l", "d"), file("l/x")}, "a link leads there", 0},
		"links that add up":        {[]tar.Header{dir("p/"), dir("p/q/"), link("p/q/s", "../.."), link("p/t", "q/s/..")}, "", 1},
		"a directory over a link":  {[]tar.Header{dir("d/"), link("l", "d"), dir("l/"), file("l/x")}, "a link leads there", 0},
		"a hard link out":          {[]tar.Header{hard("h", "../canary")}, "leads out", 0},
		"a hard link to an entry":  {[]tar.Header{file("f"), hard("h", "f")}, "", 0},
		"through a file":           {[]tar.Header{file("f"), file("f/x")}, "not a directory", 0},
		"a device":                 {[]tar.Header{{Name: "d", Typeflag: tar.TypeBlock, Devmajor: 8}}, "", 1},
		"a pipe":                   {[]tar.Header{{Name: "d", Typeflag: tar.TypeFifo}}, "", 1},
		"the directory itself":     {[]tar.Header{dir("./"), link(".", "..")}, "", 0},
		"a link in place of a dir": {[]tar.Header{dir("d/"), link("d", "x")}, "a directory is there", 0},
	} {
		t.Run(name, func(t *testing.T) {
			var stream bytes.Buffer
			w := tar.NewWriter(&stream)
			for _, h := range tt.entries {
				if err := w.WriteHeader(&h); err != nil {
					t.Fatal(err)
				}
				io.WriteString(w, "wrong"[:h.Size])
			}
			w.Close()
			base := tree(t, map[string]string{"canary": "safe", "in/": ""})
			var skipped []string
			err := rooted(t, Below, filepath.Join(base, "in")).Unpack(context.Background(), &stream, ".", true, how(&skipped))
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) || len(skipped) != tt.skipped {
				t.Errorf("%v, %q; want %q", err, skipped, tt.err)
			}
			got := list(t, base)
			if got["canary"] != "safe" {
				t.Errorf("the canary: %q", got["canary"])
			}
			for name, text := range got {
				if strings.HasPrefix(text, "->") && !staysBelow(strings.TrimPrefix(name, "in/"), text[2:]) || strings.Contains(name, unfinished) {
					t.Errorf("left: %s %s", name, text)
				}
			}
		})
	}
}

// Ten thousand copies both ways, while what they go through is swapped for links that lead
// out: nothing outside is read or written (CVE-2018-15664 and its kin).
func TestSwapsLeadNowhere(t *testing.T) {
	base := tree(t, map[string]string{"out/f": "canary", "in/d/f": "inside", "in/e/f": "inside"})
	in := filepath.Join(base, "in")
	if err := os.Symlink(filepath.Join(base, "out"), filepath.Join(in, "absolute")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../out", filepath.Join(in, "relative")); err != nil {
		t.Fatal(err)
	}
	done, swapped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(swapped)
		for i := 0; ; i++ {
			for _, link := range []string{"absolute", "relative"} {
				for range 2 {
					unix.Renameat2(unix.AT_FDCWD, filepath.Join(in, "d"), unix.AT_FDCWD, filepath.Join(in, link), unix.RENAME_EXCHANGE)
				}
			}
			select {
			case <-done:
				return
			default:
			}
		}
	}()
	root := rooted(t, Inside, in)
	var stream bytes.Buffer
	w := tar.NewWriter(&stream)
	w.WriteHeader(&tar.Header{Name: "f", Typeflag: tar.TypeReg, Size: 6, Mode: 0o600})
	io.WriteString(w, "inside")
	w.Close()
	found, failed := 0, 0
	var skipped []string
	for i := range 10_000 {
		var out bytes.Buffer
		name := []string{"d/f", "d", ".", "d/../d/f"}[i%4]
		if err := root.Pack(context.Background(), &out, name, "x", func(string) {}); err == nil {
			found++
		} else {
			failed++
		}
		if bytes.Contains(out.Bytes(), []byte("canary")) {
			t.Fatalf("%s was read outside of the root", name)
		}
		root.Unpack(context.Background(), bytes.NewReader(stream.Bytes()), "d", false, how(&skipped)) // it may find nothing
	}
	close(done)
	<-swapped
	if got := list(t, filepath.Join(base, "out")); len(got) != 1 || got["f"] != "canary" {
		t.Errorf("outside: %q", got)
	}
	t.Logf("%d copies, %d found nothing", found, failed)
	if found == 0 || failed == 0 {
		t.Errorf("it was no race: %d, %d", found, failed)
	}
	for name := range list(t, in) {
		if strings.Contains(name, unfinished) {
			t.Errorf("left: %s", name)
		}
	}
}

// What blocks or never ends is no file: it is skipped, and a copy that is given up ends.
func TestPackEnds(t *testing.T) {
	dir := tree(t, map[string]string{"a": "text"})
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	var skipped []string
	root := rooted(t, Inside, dir)
	if err := root.Pack(context.Background(), io.Discard, ".", "x", func(s string) { skipped = append(skipped, s) }); err != nil || !slices.Equal(skipped, []string{"x/fifo: neither a file nor a directory nor a link"}) {
		t.Errorf("%v %q", err, skipped)
	}
	if err := os.Truncate(filepath.Join(dir, "a"), 1<<40); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := root.Pack(ctx, io.Discard, "a", "a", func(string) {}); err == nil {
		t.Error("it went on")
	}
	deep := filepath.Join(dir, strings.Repeat("d/", maxDepth+1))
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := root.Pack(context.Background(), io.Discard, "d", "d", func(string) {}); err == nil || !strings.Contains(err.Error(), "deep") {
		t.Errorf("too deep: %v", err)
	}
}
