package image

import (
	"archive/tar"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/testenv"
)

// hostileCorpus are layers that try to reach a canary outside, with methods that worked on other unpackers,
// in addition to the methods of TestHostileNames. CANARY stands for its path, CANARYDIR for its directory, UP for
// more ".." than there are directories above.
var hostileCorpus = map[string][]f{
	"dots behind a slash":        {{Name: "/UPCANARY", Content: "evil"}},
	"dots as last part":          {{Name: "a/.."}, {Name: "a/../..", Type: tar.TypeDir}},
	"many slashes":               {{Name: "///CANARY", Content: "evil"}},
	"dots between":               {{Name: "a/./../.././UPCANARY", Content: "evil"}},
	"the root is a link":         {{Name: ".", Link: "CANARYDIR"}, {Name: "canary", Content: "evil"}},
	"the root is a file":         {{Name: ".", Content: "evil"}, {Name: "a/..", Content: "evil"}},
	"link to where it is":        {{Name: "l", Link: "."}, {Name: "l/l/l/UPCANARY", Content: "evil"}},
	"links in a circle":          {{Name: "a", Link: "b"}, {Name: "b", Link: "a"}, {Name: "a/canary", Content: "evil"}},
	"link to itself":             {{Name: "a", Link: "a"}, {Name: "a/canary", Content: "evil"}},
	"link through a file":        {{Name: "x", Content: "x"}, {Name: "l", Link: "x/UPCANARYDIR"}, {Name: "l/canary", Content: "evil"}},
	"link through what is not":   {{Name: "l", Link: "nosuch/UPCANARYDIR"}, {Name: "l/canary", Content: "evil"}},
	"link and a directory":       {{Name: "l", Link: "CANARYDIR"}, {Name: "l/"}, {Name: "l/canary", Content: "evil"}},
	"a directory turns link":     {{Name: "d/"}, {Name: "d", Link: "CANARYDIR"}, {Name: "d/canary", Content: "evil"}},
	"a file turns link":          {{Name: "d", Content: "x"}, {Name: "d", Link: "CANARY"}, {Name: "d", Content: "evil"}},
	"link with a slash":          {{Name: "l/", Type: tar.TypeSymlink, Link: "CANARYDIR"}, {Name: "l/canary", Content: "evil"}},
	"the root of a process":      {{Name: "l", Link: "/proc/self/root/CANARYDIR"}, {Name: "l/canary", Content: "evil"}},
	"where a process is":         {{Name: "l", Link: "/proc/self/cwd/UPCANARYDIR"}, {Name: "l/canary", Content: "evil"}},
	"a descriptor":               {{Name: "l", Link: "/proc/self/fd/3"}, {Name: "l/canary", Content: "evil"}, {Name: "l", Content: "evil"}},
	"hard link to a directory":   {{Name: "h", Type: tar.TypeLink, Link: "CANARYDIR"}, {Name: "h/canary", Content: "evil"}},
	"hard link through a link":   {{Name: "l", Link: "CANARYDIR"}, {Name: "h", Type: tar.TypeLink, Link: "l/canary"}, {Name: "h", Content: "evil"}},
	"hard link in a link":        {{Name: "x", Content: "x"}, {Name: "l", Link: "CANARYDIR"}, {Name: "l/canary", Type: tar.TypeLink, Link: "x"}},
	"hard link to itself":        {{Name: "h", Type: tar.TypeLink, Link: "h"}, {Name: "h", Type: tar.TypeLink, Link: "./UPh"}},
	"hard link to nothing":       {{Name: "h", Type: tar.TypeLink, Link: ""}, {Name: "g", Type: tar.TypeLink, Link: "/"}},
	"owner through a link":       {{Name: "l", Link: "CANARY", UID: 7, GID: 7}, {Name: "h", Type: tar.TypeLink, Link: "l", UID: 9, GID: 9, Mode: 0o4777}},
	"xattr through a link":       {{Name: "l", Link: "CANARY", Xattrs: map[string]string{"user.evil": "1"}}},
	"xattr through a parent":     {{Name: "l", Link: "CANARYDIR"}, {Name: "l/", Xattrs: map[string]string{"user.evil": "1"}}},
	"FIFO through a link":        {{Name: "l", Link: "CANARYDIR"}, {Name: "l/canary", Type: tar.TypeFifo}},
	"FIFO that is written":       {{Name: "p", Type: tar.TypeFifo}, {Name: "p", Content: "evil"}, {Name: "q", Type: tar.TypeLink, Link: "p"}},
	"device through a link":      {{Name: "l", Link: "CANARYDIR"}, {Name: "l/canary", Type: tar.TypeChar, Dev: 1}},
	"whiteout of the root":       {{Name: ".wh.."}, {Name: ".wh."}, {Name: "a/.wh...", Content: "x"}},
	"whiteout that is a link":    {{Name: ".wh.x", Link: "CANARY"}, {Name: ".wh.x/canary", Content: "evil"}},
	"whiteout through two links": {{Name: "a", Link: "b"}, {Name: "b", Link: "CANARYDIR"}, {Name: "a/.wh..wh..opq"}, {Name: "a/.wh.canary"}},
	"a name that lies":           {{Name: "a\n/UPCANARY", Content: "evil"}, {Name: "a\\..\\..\\UPCANARY", Content: "evil"}},
}

// TestHostileCorpus: with the layers of TestHostileNames there are fifty.
func TestHostileCorpus(t *testing.T) {
	testenv.NoLeaks(t)
	for name, entries := range hostileCorpus {
		t.Run(name, func(t *testing.T) { reachesNothing(t, entries) })
	}
}

// reachesNothing, a parallel test, loads a layer that is refused or contained: the canary is unchanged, and a refused layer
// leaves nothing behind.
func reachesNothing(t *testing.T, entries []f) {
	t.Helper()
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	canary := filepath.Join(dir, "canary")
	if err := os.WriteFile(canary, []byte("alive"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := inUserns(t, "_tree", dir)
	paths := strings.NewReplacer("CANARYDIR", dir, "CANARY", canary, "UP", strings.Repeat("../", 12))
	entries = append([]f(nil), entries...)
	for i := range entries {
		entries[i].Name, entries[i].Link = paths.Replace(entries[i].Name), paths.Replace(entries[i].Link)
	}
	l := newLayout(t).add(img{Name: "hostile", Layers: [][]byte{layerTar(t, entries...)}})
	s := newStore(t)
	_, err := s.Load(context.Background(), l.path()) // it may be refused or contained
	t.Logf("load: %v", err)
	if diff := cmp.Diff(before, inUserns(t, "_tree", dir)); diff != "" {
		t.Errorf("a layer reached out:\n%s", diff)
	}
	if err != nil && len(content(t, s)) > 0 {
		t.Errorf("refused, but left in the store: %v", content(t, s))
	}
}

// TestBenignCorpus: harmless layers that look similar are unpacked correctly.
func TestBenignCorpus(t *testing.T) {
	for name, tt := range map[string]struct {
		entries []f
		want    tree
	}{
		"link out of the image": {[]f{{Name: "l", Link: "/etc/passwd"}, {Name: "m", Link: "../../x"}},
			tree{".": "dir 0755 0:0", "l": "link /etc/passwd", "m": "link ../../x"}},
		"absolute link inside": {[]f{{Name: "run/"}, {Name: "var/"}, {Name: "var/run", Link: "/run"}, {Name: "var/run/f", Content: "x"}},
			tree{".": "dir 0755 0:0", "run": "dir 0755 0:0", "run/f": "file 0644 0:0 x", "var": "dir 0755 0:0", "var/run": "link /run"}},
		"dots that stay": {[]f{{Name: "a/"}, {Name: "a/../b", Content: "x"}, {Name: "./c", Content: "y"}},
			tree{".": "dir 0755 0:0", "a": "dir 0755 0:0", "b": "file 0644 0:0 x", "c": "file 0644 0:0 y"}},
		"names with dots": {[]f{{Name: "..a", Content: "x"}, {Name: "...", Content: "y"}, {Name: "b..", Content: "z"}},
			tree{".": "dir 0755 0:0", "..a": "file 0644 0:0 x", "...": "file 0644 0:0 y", "b..": "file 0644 0:0 z"}},
		"hard link inside": {[]f{{Name: "a", Content: "x"}, {Name: "h", Type: tar.TypeLink, Link: "/a"}},
			tree{".": "dir 0755 0:0", "a": "file 0644 0:0 x", "h": "file 0644 0:0 x"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			got := load(t, s, newLayout(t).add(img{Name: "benign", Layers: [][]byte{layerTar(t, tt.entries...)}}).path())
			if diff := cmp.Diff(tt.want, inUserns(t, "_tree", got.Layers[0])); diff != "" {
				t.Errorf("layer (-want +got):\n%s", diff)
			}
		})
	}
}
