package image

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/testenv"
)

func save(t *testing.T, s *testStore, o api.SaveOptions, refs ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "saved.tar")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := s.Save(context.Background(), refs, api.Target{Out: file, Scratch: t.TempDir()}, o); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSave: an image is unchanged after it was saved and loaded, in every form, by any program; and the same
// images give the same bytes.
func TestSave(t *testing.T) {
	testenv.NoLeaks(t)
	s := newStore(t)
	i := two(t, "two:1")
	i.Compress = gzipped
	first := load(t, s, newLayout(t).add(i).path())
	load(t, s, newLayout(t).add(img{Name: "odd:1", Layers: [][]byte{odd(t)}}).path())
	for _, o := range []api.SaveOptions{{Format: api.OCIArchive}, {Format: api.DockerArchive}, {Format: api.OCIArchive, Compress: "zstd"}, {Format: api.OCIArchive, Compress: "gzip"}, {Format: api.DockerArchive, Compress: "gzip"}} {
		t.Run(o.Format+o.Compress, func(t *testing.T) {
			t.Parallel()
			path := save(t, s, o, "two:1", "odd:1")
			a, _ := os.ReadFile(path)
			if b, _ := os.ReadFile(save(t, s, o, "two:1", "odd:1")); !bytes.Equal(a, b) {
				t.Error("saved twice it is two archives")
			}
			other := newStore(t)
			images, err := other.Load(context.Background(), path)
			if err != nil || len(images) != 2 {
				t.Fatalf("%+v, %v", images, err)
			}
			got := images[0]
			if got.ID != first.ID || got.Name != first.Name || o.Format == api.OCIArchive && got.Digest != first.Digest {
				t.Errorf("got %+v, want %+v", got, first)
			}
			if found, err := other.Verify(context.Background(), nil, nil); err != nil || len(found[0].Damage)+len(found[1].Damage) > 0 {
				t.Errorf("%+v, %v", found, err)
			}
			if diff := cmp.Diff(twoMerged, merged(t, got.Layers)); diff != "" {
				t.Errorf("root file system (-want +got):\n%s", diff)
			}
			from := map[string]string{api.OCIArchive: "oci-archive:" + path + ":docker.io/library/two:1", api.DockerArchive: "docker-archive:" + path + ":docker.io/library/two:1"}[o.Format]
			dir := t.TempDir()
			skopeo(t, "copy", from, "oci:"+dir+":x")
			again := load(t, newStore(t), dir)
			if again.ID != first.ID && o.Format == api.OCIArchive {
				t.Errorf("by way of skopeo it is %s, want %s", again.ID, first.ID)
			}
		})
	}
}

// TestSaveDir: a directory is updated by saving more into it.
func TestSaveDir(t *testing.T) {
	testenv.NoLeaks(t)
	s, _, _ := shared(t)
	stick := t.TempDir()
	dir := filepath.Join(stick, "images")
	to := func(refs ...string) {
		t.Helper()
		if err := s.Save(context.Background(), refs, api.Target{Dir: dir}, api.SaveOptions{Format: api.OCIDir}); err != nil {
			t.Fatal(err)
		}
	}
	to("a:1")
	blobs, _ := filepath.Glob(filepath.Join(dir, "blobs/sha256/*"))
	if err := os.WriteFile(blobs[0], []byte("the stick has lost it"), 0o644); err != nil {
		t.Fatal(err)
	}
	to("b:1", "c:1", "a:1")
	archive, err := os.ReadFile(save(t, s, api.SaveOptions{Format: api.DockerArchive}, "c:1"))
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile(filepath.Join(stick, "c.TAR"), archive, 0o644)
	os.WriteFile(filepath.Join(stick, "letter.txt"), []byte("hello"), 0o644)
	os.Mkdir(filepath.Join(stick, "photos"), 0o755)
	other := newStore(t)
	images, err := other.LoadAll(context.Background(), stick, nil)
	if err != nil || len(images) != 4 {
		t.Errorf("%d images, %v", len(images), err)
	}
	if diff := cmp.Diff([]string{"a:1", "b:1", "c:1"}, familiar(namesOf(t, other))); diff != "" {
		t.Error(diff)
	}
	if _, err := other.LoadAll(context.Background(), filepath.Join(stick, "photos"), nil); err == nil || !strings.Contains(err.Error(), "no archive of images in it") {
		t.Error(err)
	}
}

// TestSaveDigests: an image that was pulled by the digest of an index can be named by it where its archive
// is loaded. Unverifiable annotations of an archive are ignored.
func TestSaveDigests(t *testing.T) {
	testenv.NoLeaks(t)
	l := newLayout(t)
	d := l.image(img{Layers: [][]byte{layerTar(t, f{Name: "a"})}, Compress: gzipped})
	d.Platform = &v1.Platform{OS: "linux", Architecture: here()}
	index := l.json(v1.MediaTypeImageIndex, v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{d}})
	index.Annotations = map[string]string{v1.AnnotationRefName: "multi:1"}
	l.index.Manifests = append(l.index.Manifests, index)
	s := newStore(t)
	load(t, s, l.path())
	path := save(t, s, api.SaveOptions{Format: api.OCIArchive}, "multi:1")
	other := newStore(t)
	load(t, other, path)
	for _, digest := range []string{index.Digest.String(), d.Digest.String()} {
		if _, err := other.Resolve("multi@" + digest); err != nil {
			t.Error(err)
		}
	}
	lie := t.TempDir()
	if out, err := exec.Command("tar", "xf", path, "-C", lie).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.WriteFile(filepath.Join(lie, "blobs/sha256", index.Digest.Encoded()), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	third := newStore(t)
	load(t, third, lie)
	if _, err := third.Resolve("multi@" + index.Digest.String()); err == nil {
		t.Error("a digest is believed that leads nowhere")
	}
}

func TestSaveRefuses(t *testing.T) {
	s := newStore(t)
	image := load(t, s, newLayout(t).add(img{Name: "x:1", Layers: [][]byte{layerTar(t, f{Name: "a", Content: "1"}, f{Name: "b"})}}).path())
	load(t, s, newLayout(t).add(img{Name: "twice:1", Layers: [][]byte{layerTar(t, f{Name: "a", Content: "1"}, f{Name: "a", Content: "2"})}}).path())
	if err := os.WriteFile(layerPath(image, 0, "a"), []byte("2"), 0o644); err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]string{
		"x:1": "it is damaged: a: its content has changed", "none:1": "image is not on this machine",
		"twice:1": "archive contains overwritten files",
	} {
		err := s.Save(context.Background(), []string{ref}, api.Target{Out: new(bytes.Buffer), Scratch: t.TempDir()}, api.SaveOptions{Format: api.OCIArchive})
		wantError(t, err, want)
	}
}

func TestTag(t *testing.T) {
	s, a, b := shared(t)
	for _, err := range []error{s.Tag("a:1", "mine:2"), s.Tag(a.ID[len("sha256:"):20], "mine:3"), s.Tag("a:1", "b:1"), s.Tag("a:1", "mine:2")} {
		if err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"mine:2", "mine:3", "b:1"} {
		if got, err := s.Resolve(name); err != nil || got.ID != a.ID {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if got, err := s.Resolve("c:1"); err != nil || got.ID != b.ID {
		t.Errorf("c:1: %+v, %v", got, err)
	}
	wantError(t, s.Tag("none:1", "x:1"), "image is not on this machine")
	wantError(t, s.Tag("a:1", "x@"+a.ID), "cannot be assigned")
	wantError(t, s.Tag("a:1", "X"), "image name")
	d, err := s.Inspect("mine:2")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a:1", "b:1", "mine:2", "mine:3"}, familiar(d.RepoTags)); diff != "" || len(d.RepoDigests) != 3 || d.Size != 0 || len(d.Layers) != 2 || !d.Layers[0].Shared || d.Layers[1].Shared {
		t.Errorf("%s\n%+v", diff, d)
	}
}

// TestTagKeepsTheIndex: an image that was pulled without a name, as an update does, and is given one later
// still has the index that the registry has under that name; and so has the previous image when the update
// is undone.
func TestTagKeepsTheIndex(t *testing.T) {
	l := newLayout(t)
	var tops []string
	s := newStore(t)
	var ids []string
	for _, name := range []string{"1", "2"} {
		m := l.image(img{Layers: [][]byte{layerTar(t, f{Name: name})}})
		m.Platform = &v1.Platform{OS: "linux", Architecture: here()}
		top := l.json(v1.MediaTypeImageIndex, v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{m}})
		l.index.Manifests = []v1.Descriptor{top}
		_, repo := newFake(t, l)
		tops = append(tops, top.Digest.String())
		got, err := s.Pull(context.Background(), repo, api.PullOptions{NoName: name == "2"})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, got.ID)
	}
	for _, i := range []int{1, 0, 1} {
		if err := s.Tag(ids[i], "example.com/x:1"); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Resolve("example.com/x@" + tops[i]); err != nil || got.ID != ids[i] {
			t.Errorf("by the digest of its index: %+v, %v", got, err)
		}
	}
	wantHint(t, s.Tag("none:1", "x:1"))
	_, err := s.Inspect("none:1")
	wantHint(t, err)
	wantHint(t, s.Remove("none:1", RemoveOptions{}))
}

// wantHint checks that the error of a missing image has the hint where to look.
func wantHint(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, api.ErrNotFound) || !strings.Contains(report.Hint(err), "podrun image ls") {
		t.Errorf("%v, hint %q", err, report.Hint(err))
	}
}
