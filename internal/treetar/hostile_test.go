package treetar

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The cases are streams from a container that an attacker controls.
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
			err := rooted(t, OpenOwn, filepath.Join(base, "in")).Unpack(context.Background(), &stream, ".", true, how(&skipped))
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) || len(skipped) != tt.skipped {
				t.Errorf("%v, %q; want %q", err, skipped, tt.err)
			}
			got := list(t, base)
			if got["canary"] != "safe" {
				t.Errorf("the canary: %q", got["canary"])
			}
			for name, text := range got {
				if strings.HasPrefix(text, "->") && !staysBelow(strings.TrimPrefix(name, "in/"), text[2:]) || strings.Contains(name, tempPrefix) {
					t.Errorf("left: %s %s", name, text)
				}
			}
		})
	}
}

// raceRounds returns how often copies race with swaps; scripts/torture sets more.
func raceRounds() int {
	if n, err := strconv.Atoi(os.Getenv("PODRUN_RACES")); err == nil {
		return n
	}
	return 1000
}

// Copies in both directions, while their paths are swapped for links that lead out, read and write
// nothing outside (CVE-2018-15664 and similar).
func TestSwapRacesLeadNowhere(t *testing.T) {
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
	root := rooted(t, OpenForeign, in)
	var stream bytes.Buffer
	w := tar.NewWriter(&stream)
	w.WriteHeader(&tar.Header{Name: "f", Typeflag: tar.TypeReg, Size: 6, Mode: 0o600})
	io.WriteString(w, "inside")
	w.Close()
	found, failed := 0, 0
	var skipped []string
	for i := range raceRounds() {
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
		if strings.Contains(name, tempPrefix) {
			t.Errorf("left: %s", name)
		}
	}
}

// Pack skips files that block or never end, and ends with its context.
func TestPackEnds(t *testing.T) {
	dir := tree(t, map[string]string{"a": "text"})
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	var skipped []string
	root := rooted(t, OpenForeign, dir)
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
