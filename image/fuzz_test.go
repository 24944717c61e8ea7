package image

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/testenv"
)

// fuzzedEnv names the number of generated layers, instead of usualFuzzed: scripts/torture runs an hour's
// worth.
const (
	fuzzedEnv   = "PODRUN_LAYERS"
	usualFuzzed = 60
)

// TestHostileLayersMadeUp generates layers whose entries refer to one another in every way that tar
// allows, some with changed bytes. Refused or unpacked, they do not change a canary outside, the unpacker
// ends, and nothing is left behind.
func TestHostileLayersMadeUp(t *testing.T) {
	testenv.NoLeaks(t)
	n, seed := usualFuzzed, uint64(7) // the same ones each time, except in torture
	if word := os.Getenv(fuzzedEnv); word != "" {
		var err error
		if n, err = strconv.Atoi(word); err != nil {
			t.Fatal(err)
		}
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	outside := t.TempDir()
	if err := os.Chmod(outside, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"canary", "dir/canary"} {
		path := filepath.Join(outside, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("alive"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	before := asItIs(t, outside)
	s := newStore(t)
	path := filepath.Join(t.TempDir(), "layer.tar")
	good := 0
	for i := range n {
		layer := madeUp(t, rnd, outside)
		if err := os.WriteFile(path, layer, 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		_, err := s.Import(ctx, path, "made:up")
		if ctx.Err() != nil {
			t.Fatalf("layer %d of seed %d: the unpacker does not end: %v", i, seed, err)
		}
		cancel()
		if diff := cmp.Diff(before, asItIs(t, outside)); diff != "" {
			t.Fatalf("layer %d of seed %d reached out:\n%s", i, seed, diff)
		}
		if err == nil {
			good++
			if err := s.Remove("made:up", RemoveOptions{}); err != nil {
				t.Fatalf("layer %d of seed %d: %v", i, seed, err)
			}
		}
		if left := content(t, s); len(left) > 0 {
			t.Fatalf("layer %d of seed %d: left in the store: %v (%v)", i, seed, left, err)
		}
	}
	t.Logf("%d of %d were unpacked", good, n)
	if n >= usualFuzzed && (good < n/5 || good == n) {
		t.Errorf("%d of %d were unpacked: it shows little", good, n)
	}
}

// asItIs returns the content of a directory, with the times at which anything was changed.
func asItIs(t *testing.T, dir string) map[string]string {
	t.Helper()
	m := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := ""
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = string(b)
		}
		m[path] = fmt.Sprint(info.Mode(), info.ModTime().UnixNano(), text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// madeUp returns a layer of a few entries with names from few parts, so that they collide.
func madeUp(t *testing.T, rnd *rand.Rand, outside string) []byte {
	t.Helper()
	hostile := []string{
		"..", ".", "", "../../../../../..", "/", outside, outside + "/dir", "canary",
		".wh.a", ".wh.b", ".wh..wh..opq", ".wh..", ".wh...", ".wh.", ".wh.canary", "proc/self/root", strings.Repeat("n", 256), "new\nline", "\xff",
	}
	name := func() string {
		var list []string
		for range 1 + rnd.IntN(3) {
			if rnd.IntN(6) == 0 {
				list = append(list, hostile[rnd.IntN(len(hostile))])
				continue
			}
			list = append(list, string(rune('a'+rnd.IntN(4))))
		}
		return strings.Join(list, "/")
	}
	types := []byte{tar.TypeReg, tar.TypeReg, tar.TypeDir, tar.TypeDir, tar.TypeSymlink, tar.TypeSymlink, tar.TypeLink, tar.TypeChar, tar.TypeBlock, tar.TypeFifo}
	keys := []string{"user.overlay.opaque", "user.overlay.redirect", "user.overlay.metacopy", "trusted.overlay.opaque", "security.capability", "user.x", "system.posix_acl_access"}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for range 1 + rnd.IntN(12) {
		h := &tar.Header{Name: name(), Typeflag: types[rnd.IntN(len(types))], Mode: rnd.Int64N(0o10000), Uid: rnd.IntN(70000), Gid: rnd.IntN(70000), Format: tar.FormatPAX}
		switch h.Typeflag {
		case tar.TypeReg:
			h.Size = rnd.Int64N(2000)
		case tar.TypeSymlink, tar.TypeLink:
			h.Linkname = name()
		case tar.TypeChar, tar.TypeBlock:
			h.Devmajor, h.Devminor = rnd.Int64N(3), rnd.Int64N(8)
		}
		if rnd.IntN(4) == 0 {
			h.PAXRecords = map[string]string{"SCHILY.xattr." + keys[rnd.IntN(len(keys))]: name()}
		}
		if err := w.WriteHeader(h); err != nil {
			continue // the writer refuses it
		}
		if _, err := w.Write(make([]byte, h.Size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b := buf.Bytes()
	if rnd.IntN(4) == 0 { // no writer makes such bytes
		for range 1 + rnd.IntN(20) {
			b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8)
		}
	}
	return b
}
