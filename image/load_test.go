package image

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/testenv"
)

// two returns an image of two layers that uses most features of layers.
func two(t testing.TB, name string) img {
	return img{
		Name: name,
		Config: v1.ImageConfig{
			Entrypoint: []string{"/bin/tool"}, Cmd: []string{"-x"}, Env: []string{"A=b"},
			User: "app", WorkingDir: "/srv", StopSignal: "SIGQUIT",
		},
		Layers: [][]byte{
			layerTar(t, f{Name: "bin/", Mode: 0o755}, f{Name: "bin/tool", Content: "one", Mode: 0o4755},
				f{Name: "bin/alias", Link: "tool"}, f{Name: "bin/hard", Type: '1', Link: "bin/tool", Mode: 0o4755},
				f{Name: "home/", Mode: 0o700, UID: 1000, GID: 1000}, f{Name: "home/note", Content: "mine", UID: 1000, GID: 1000},
				f{Name: "old/"}, f{Name: "old/a", Content: "a"}, f{Name: "gone", Content: "x"}),
			layerTar(t, f{Name: "old/"}, f{Name: "old/.wh..wh..opq"}, f{Name: "old/b", Content: "b"}, f{Name: ".wh.gone"}),
		},
	}
}

var twoMerged = tree{
	".":         "dir 0755 0:0",
	"bin":       "dir 0755 0:0",
	"bin/tool":  "file 4755 0:0 one",
	"bin/hard":  "file 4755 0:0 one",
	"bin/alias": "link tool",
	"home":      "dir 0700 1000:1000",
	"home/note": "file 0644 1000:1000 mine",
	"old":       "dir 0755 0:0",
	"old/b":     "file 0644 0:0 b",
}

func TestLoadFormats(t *testing.T) {
	layout := newLayout(t).add(two(t, "example.com/two:1")).path()
	dir := t.TempDir()
	OCIArchive, DockerArchive := filepath.Join(dir, "oci.tar"), filepath.Join(dir, "docker.tar")
	skopeo(t, "copy", "oci:"+layout+":example.com/two:1", "oci-archive:"+OCIArchive+":example.com/two:1")
	skopeo(t, "copy", "oci:"+layout+":example.com/two:1", "docker-archive:"+DockerArchive+":example.com/two:1")
	gz := newLayout(t).add(two(t, "example.com/two:1"))
	gz.index.Manifests[0] = gz.image(func() img { i := two(t, "example.com/two:1"); i.Compress = gzipped; return i }())
	zst := newLayout(t).add(func() img { i := two(t, "example.com/two:1"); i.Compress = zstandard; return i }())

	for name, path := range map[string]string{
		"layout":             layout,
		"layout, gzip":       gz.path(),
		"layout, zstd":       zst.path(),
		"oci-archive":        OCIArchive,
		"oci-archive, gzip":  tarFile(t, layout, gzipped),
		"docker-archive":     DockerArchive,
		"docker-archive, gz": compressFile(t, DockerArchive, gzipped),
		"docker-archive, zs": compressFile(t, DockerArchive, zstandard),
	} {
		t.Run(name, func(t *testing.T) {
			testenv.NoLeaks(t)
			s := newStore(t)
			got := load(t, s, path)
			want := pod.Image{
				Name: "example.com/two:1", Entrypoint: []string{"/bin/tool"}, Cmd: []string{"-x"}, Env: []string{"A=b"},
				User: "app", WorkingDir: "/srv", StopSignal: "SIGQUIT",
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(pod.Image{}, "ID", "Digest", "Layers")); diff != "" {
				t.Errorf("image (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(twoMerged, merged(t, got.Layers)); diff != "" {
				t.Errorf("root file system (-want +got):\n%s", diff)
			}
			again, err := s.Resolve("example.com/two:1")
			if diff := cmp.Diff(got, again); err != nil || diff != "" {
				t.Errorf("Resolve: %v\n%s", err, diff)
			}
			if left, _ := filepath.Glob(filepath.Join(s.Dir, records.StagingDir, "[^.]*-*")); len(left) > 0 {
				t.Errorf("left in staging: %v", left)
			}
		})
	}
}

func compressFile(t *testing.T, path string, compress func(testing.TB, []byte) []byte) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "compressed")
	if err := os.WriteFile(out, compress(t, b), 0o644); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestLoadNames(t *testing.T) {
	layer := layerTar(t, f{Name: "x", Content: "x"})
	for _, tt := range []struct{ saved, want string }{
		{"busybox:1.36", "docker.io/library/busybox:1.36"},
		{"busybox", "docker.io/library/busybox:latest"},
		{"localhost/x:1", "localhost/x:1"},
		{"example.org/a/b", "example.org/a/b:latest"},
		{"My App", ""}, // the annotation is free text
		{"", ""},
	} {
		s := newStore(t)
		got := load(t, s, newLayout(t).add(img{Name: tt.saved, Layers: [][]byte{layer}}).path())
		if got.Name != tt.want {
			t.Errorf("saved as %q: named %q, want %q", tt.saved, got.Name, tt.want)
		}
		byID, err := s.Resolve(got.ID)
		if err != nil || byID.Name != tt.want || byID.ID != got.ID {
			t.Errorf("Resolve(%s) = %+v, %v", got.ID, byID, err)
		}
	}
}

func TestLoadSeveralImages(t *testing.T) {
	l := newLayout(t)
	l.add(img{Name: "a:1", Layers: [][]byte{layerTar(t, f{Name: "a"})}})
	l.add(img{Name: "b:1", Layers: [][]byte{layerTar(t, f{Name: "b"})}, Arch: "s390x"})
	l.add(img{Name: "c:1", Layers: [][]byte{layerTar(t, f{Name: "a"}), layerTar(t, f{Name: "c"})}})
	s := newStore(t)
	images, err := s.Load(context.Background(), l.path())
	if err == nil || len(images) != 2 || images[0].Name != "docker.io/library/a:1" || images[1].Name != "docker.io/library/c:1" {
		t.Errorf("got %d images, %v; want a and c, and an error about b", len(images), err)
	}
	if images[0].Layers[0] != images[1].Layers[0] {
		t.Error("the layer that both have is there twice")
	}
}

func TestLoadPicksPlatform(t *testing.T) {
	here, other := v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, v1.Platform{OS: "linux", Architecture: "s390x"}
	if runtime.GOARCH == "arm" {
		here.Variant = "v5"
	}
	images := []img{
		{Name: "multi:1", Arch: "s390x", Platform: &other, Layers: [][]byte{layerTar(t, f{Name: "wrong"})}},
		{Name: "multi:1", Platform: &here, Layers: [][]byte{layerTar(t, f{Name: "right"})}},
	}
	want := tree{".": "dir 0755 0:0", "right": "file 0644 0:0 "}

	t.Run("entries of one name", func(t *testing.T) {
		got := load(t, newStore(t), newLayout(t).add(images[0]).add(images[1]).path())
		if diff := cmp.Diff(want, merged(t, got.Layers)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("an index", func(t *testing.T) {
		l := newLayout(t)
		nested := l.index
		nested.Manifests = []v1.Descriptor{l.image(images[0]), l.image(images[1])}
		d := l.json(v1.MediaTypeImageIndex, nested)
		d.Annotations = map[string]string{v1.AnnotationRefName: "multi:1"}
		l.index.Manifests = []v1.Descriptor{d}
		s := newStore(t)
		got := load(t, s, l.path())
		if diff := cmp.Diff(want, merged(t, got.Layers)); diff != "" {
			t.Error(diff)
		}
		for _, ref := range []string{"multi@" + d.Digest.String(), "multi:1@" + d.Digest.String(), "multi@" + got.Digest} {
			if byDigest, err := s.Resolve(ref); err != nil || byDigest.ID != got.ID {
				t.Errorf("Resolve(%s): %v", ref, err)
			}
		}
	})
	t.Run("none", func(t *testing.T) {
		l := newLayout(t)
		nested := l.index
		nested.Manifests = []v1.Descriptor{l.image(images[0])}
		l.index.Manifests = []v1.Descriptor{l.json(v1.MediaTypeImageIndex, nested)}
		refused(t, l.path(), "there is no image for linux/")
	})
}

func TestLoadNotAnImage(t *testing.T) {
	rootfs := filepath.Join(t.TempDir(), "rootfs.tar")
	if err := os.WriteFile(rootfs, layerTar(t, f{Name: "etc/"}), 0o644); err != nil {
		t.Fatal(err)
	}
	refused(t, rootfs, "it is not an image")
	refused(t, t.TempDir(), "it is not an image")
	refused(t, filepath.Join(t.TempDir(), "missing"), "no such file")
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	refused(t, text, "read archive: it is not a tar archive")
}

func TestResolveMissing(t *testing.T) {
	s := newStore(t)
	for _, ref := range []string{"busybox", "busybox:1", "sha256:" + hex64, hex64, "busybox@sha256:" + hex64} {
		if _, err := s.Resolve(ref); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("Resolve(%s): %v, want ErrNotFound", ref, err)
		}
	}
	for _, ref := range []string{"", "Upper", "a b", "../x", "x@sha256:12", "x@sha512:" + hex64 + hex64} {
		if _, err := s.Resolve(ref); api.Reason(err) != api.InvalidImageName {
			t.Errorf("Resolve(%q): %v, want InvalidImageName", ref, err)
		}
	}
}

const hex64 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// TestPipeWithoutEnd loads from a FIFO that has no writer, or one that writes nothing: it ends with its
// context.
func TestPipeWithoutEnd(t *testing.T) {
	for name, writes := range map[string]bool{"no writer": false, "silent writer": true} {
		for verb, do := range map[string]func(s *testStore, ctx context.Context, path string) error{
			"load": func(s *testStore, ctx context.Context, path string) error {
				_, err := s.LoadAll(ctx, path, nil)
				return err
			},
			"import": func(s *testStore, ctx context.Context, path string) error {
				_, err := s.Import(ctx, path, "x")
				return err
			},
		} {
			t.Run(verb+", "+name, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "fifo")
				if err := unix.Mkfifo(path, 0o600); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				s, done := newStore(t), make(chan error, 1)
				go func() { done <- do(s, ctx, path) }()
				if writes {
					w, err := os.OpenFile(path, os.O_WRONLY, 0) // waits for the reader
					if err != nil {
						t.Fatal(err)
					}
					defer w.Close()
				}
				cancel()
				if err := <-done; err == nil {
					t.Error("it succeeded")
				}
			})
		}
	}
}
