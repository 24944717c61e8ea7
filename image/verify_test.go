package image

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/layer"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/testenv"
)

// odd returns a layer with one of everything that a recipe must reproduce.
func odd(t testing.TB) []byte {
	return layerTar(t,
		f{Name: "etc/", Mode: 0o700, UID: 33, GID: 33},
		f{Name: "etc/passwd", Content: "root:x:0:0\n"},
		f{Name: "etc/shadow", Content: "secret", Mode: 0o600, UID: 33},
		f{Name: "empty"},
		f{Name: "big", Content: strings.Repeat("0123456789abcdef", 40_000) + "x"},
		f{Name: "su", Content: "#!/bin/sh\n", Mode: 0o4755},
		f{Name: strings.Repeat("long/", 60) + "name", Content: "far"},
		f{Name: "link", Link: "etc/passwd"},
		f{Name: "hard", Type: tar.TypeLink, Link: "big"},
		f{Name: "fifo", Type: tar.TypeFifo},
		f{Name: "dev", Type: tar.TypeChar, Dev: 1},
		f{Name: "alien", Content: "whose", UID: 1 << 30},
		f{Name: ".wh.gone"},
		f{Name: "lib/.wh..wh..opq"},
		f{Name: "lib/x", Content: "x", Xattrs: map[string]string{"user.a": "b", "user.overlay.opaque": "y"}},
		f{Name: "old", Content: "pax", Time: time.Unix(1, 234567890)},
		f{Name: "usr/./x/../tool", Content: "tool"},
	)
}

// holes returns a layer with a sparse file, as GNU tar makes it.
func holes(t testing.TB) []byte {
	t.Helper()
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "holes"))
	if err != nil {
		t.Fatal(err)
	}
	file.WriteAt([]byte("begin"), 0)
	file.WriteAt([]byte("end"), 1<<20)
	file.Close()
	var all []byte
	for _, format := range []string{"posix", "gnu"} {
		cmd := exec.Command("tar", "-cSf", "-", "--format="+format, "--owner=0", "--group=0", "-C", dir, "--transform=s/holes/"+format+"/", "holes")
		b, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, bytes.TrimRight(b, "\x00")...)
		all = append(all, make([]byte, 512-len(all)%512)...)
	}
	return append(all, make([]byte, 1024)...)
}

func layerPath(img pod.Image, n int, name string) string { return filepath.Join(img.Layers[n], name) }

// TestRebuild: a layer's tar stream is made again from its files, byte for byte.
func TestRebuild(t *testing.T) {
	testenv.NoLeaks(t)
	trailing := append(odd(t), bytes.Repeat([]byte("rubbish after the end "), 5000)...)
	for name, tarStream := range map[string][]byte{"odd": odd(t), "sparse": holes(t), "trailing": trailing, "empty": layerTar(t)} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			load(t, s, newLayout(t).add(img{Name: "x", Layers: [][]byte{tarStream}}).path())
			id := digest.FromBytes(tarStream)
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			got := make(chan []byte)
			go func() {
				b, _ := io.ReadAll(r)
				got <- b
			}()
			made, err := layer.Rebuild(id, s.LayerDir(id), false, w)
			w.Close()
			b := <-got
			if err != nil || len(made.Changed) > 0 || made.Replaced || made.DiffID != id {
				t.Fatalf("rebuild: %+v, %v", made, err)
			}
			if !bytes.Equal(b, tarStream) {
				t.Errorf("got %d bytes, %s, want %d", len(b), digest.FromBytes(b), len(tarStream))
			}
		})
	}
}

// TestVerify flips a byte, or damages more, in every file in turn: each damage is found, and its file named.
func TestVerify(t *testing.T) {
	testenv.NoLeaks(t)
	var entries []f
	for i := range 20 {
		entries = append(entries, f{Name: fmt.Sprintf("d%d/f", i), Content: strings.Repeat(fmt.Sprint(i), 3000)})
	}
	tarStream := layerTar(t, append(entries, f{Name: "l", Link: "d1/f"}, f{Name: "h", Type: tar.TypeLink, Link: "d2/f"})...)
	path := newLayout(t).add(img{Name: "x:1", Layers: [][]byte{layerTar(t, f{Name: "base", Content: "b"}), tarStream}}).path()
	s := newStore(t)
	image := load(t, s, path)
	flip := func(name string, offset int64) {
		file, err := os.OpenFile(layerPath(image, 1, name), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		b := make([]byte, 1)
		file.ReadAt(b, offset)
		b[0] ^= 0x10
		file.WriteAt(b, offset)
	}
	cases := map[string]struct {
		do   func()
		want string
	}{
		"mode":     {func() { os.Chmod(layerPath(image, 1, "d3/f"), 0o600) }, "d3/f: its mode is 600 instead of 644"},
		"gone":     {func() { os.Remove(layerPath(image, 1, "d4/f")) }, "d4/f: it does not exist"},
		"cut":      {func() { os.Truncate(layerPath(image, 1, "d5/f"), 10) }, "d5/f: it has 10 bytes instead of 3000"},
		"longer":   {func() { os.Truncate(layerPath(image, 1, "d6/f"), 4000) }, "d6/f: it has 4000 bytes instead of 3000"},
		"symlink":  {func() { os.Remove(layerPath(image, 1, "l")); os.Symlink("d2/f", layerPath(image, 1, "l")) }, "l: its target has changed"},
		"hardlink": {func() { os.Remove(layerPath(image, 1, "h")); os.WriteFile(layerPath(image, 1, "h"), nil, 0o644) }, "h: it is no link to d2/f any more"},
		"type":     {func() { os.Remove(layerPath(image, 1, "d7/f")); os.Mkdir(layerPath(image, 1, "d7/f"), 0o755) }, "d7/f: it is a file of another type"},
		"recipe":   {func() { os.Truncate(filepath.Join(image.Layers[1], "..", layer.RecipeFile), 100) }, "read the layer's recipe"},
		"record":   {func() { os.WriteFile(filepath.Join(image.Layers[1], "..", records.LayerFile), nil, 0o600) }, "is damaged"},
	}
	for i := range 20 {
		name := fmt.Sprintf("d%d/f", i)
		cases["flip "+name] = struct {
			do   func()
			want string
		}{func() { flip(name, int64(i*150)) }, name + ": its content has changed"}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			whole, err := s.Verify(context.Background(), nil, nil)
			if err != nil || len(whole) != 1 || len(whole[0].Damage) != 0 || whole[0].Layers != 2 {
				t.Fatalf("before: %+v, %v", whole, err)
			}
			c.do()
			found, err := s.Verify(context.Background(), []string{"x:1"}, nil)
			if err != nil || len(found) != 1 || len(found[0].Damage) != 1 || !strings.Contains(found[0].Damage[0].String(), c.want) {
				t.Fatalf("want %q: %+v, %v", c.want, found, err)
			}
			if _, err := s.Resolve("x:1"); err == nil && name != "recipe" {
				t.Error("a damaged image is used")
			}
			if name == "recipe" {
				if err := s.MarkDamaged(digest.FromBytes(tarStream), "x"); err != nil {
					t.Fatal(err)
				}
			}
			load(t, s, path) // the damaged layer alone is unpacked again
			if _, err := s.freeLayers(nil); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestVerifyReplaced: files that a later entry of the same layer replaces are no damage.
func TestVerifyReplaced(t *testing.T) {
	testenv.NoLeaks(t)
	layer := layerTar(t, f{Name: "a", Content: "first"}, f{Name: "d/x", Content: "below"}, f{Name: "a", Content: "other"}, f{Name: "d", Content: "file"})
	s := newStore(t)
	load(t, s, newLayout(t).add(img{Name: "x", Layers: [][]byte{layer}}).path())
	found, err := s.Verify(context.Background(), nil, nil)
	if err != nil || len(found[0].Damage) > 0 {
		t.Fatalf("%+v, %v", found, err)
	}
}

// TestRepair: a damaged layer alone is fetched again while a pod runs from it. The pod's files stay as long
// as it runs.
func TestRepair(t *testing.T) {
	testenv.NoLeaks(t)
	addr := startRegistry(t)
	ref := addr + "/team/two:1"
	skopeo(t, "copy", "--dest-tls-verify=false", "oci:"+newLayout(t).add(two(t, "two")).path()+":two", "docker://"+ref)
	s := newStore(t)
	image, err := s.Pull(context.Background(), ref, api.PullOptions{})
	if err != nil {
		t.Fatal(err)
	}
	running, err := os.OpenRoot(image.Layers[1]) // as a mount has it
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	os.WriteFile(s.ImageFile(idOf(image)), []byte("{"), 0o600)
	if err := os.WriteFile(s.NameFile("rubbish"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	breakFile := layerPath(image, 1, firstFile(t, image.Layers[1]))
	if err := os.WriteFile(breakFile, []byte("broken"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.MarkDamaged(digest.NewDigestFromEncoded(digest.SHA256, filepath.Base(filepath.Dir(image.Layers[1]))), "x: y"); err != nil {
		t.Fatal(err)
	}
	found, err := s.Verify(context.Background(), nil, nil)
	if err != nil || len(found) != 2 {
		t.Fatalf("%+v, %v", found, err)
	}
	for _, v := range found {
		if len(v.Damage) == 0 {
			t.Errorf("nothing is wrong with %s", v.Name())
		}
		if err := s.Repair(context.Background(), v, api.PullOptions{}); err != nil {
			t.Error(err)
		}
	}
	again, err := s.Verify(context.Background(), nil, nil)
	if err != nil || len(again) != 1 || len(again[0].Damage) > 0 || len(again[0].Names) != 1 {
		t.Errorf("after: %+v, %v", again, err)
	}
	if _, err := running.Stat("."); err != nil {
		t.Error(err)
	}
	kept, err := filepath.Glob(filepath.Join(s.Dir, "retired", "*", "layer", records.LayerFS))
	if err != nil || len(kept) != 1 {
		t.Errorf("what the pod runs from is kept in %v, %v", kept, err)
	}
	if _, err := s.freeLayers(func(string) bool { return true }); err != nil || !exists(kept[0]) {
		t.Errorf("a layer in use is freed: %v", err)
	}
	if _, err := s.freeLayers(func(string) bool { return false }); err != nil || exists(kept[0]) {
		t.Errorf("a replaced layer stays: %v", err)
	}
}

// firstFile returns a regular file of a layer.
func firstFile(t *testing.T, dir string) string {
	t.Helper()
	var found string
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && found == "" {
			if file, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
				file.Close()
				found, _ = filepath.Rel(dir, path)
			}
		}
		return nil
	})
	if found == "" {
		t.Fatal("no file in the layer that can be written")
	}
	return found
}
