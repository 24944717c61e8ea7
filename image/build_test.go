package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/image/server"
	"github.com/podrun/podrun/internal/pod"
)

// f is an entry of a layer. The zero Mode is 0755 for directories and 0644 else.
type f struct {
	Name     string // a directory's ends with "/"
	Content  string
	Type     byte // 0: by the name and the other fields
	Link     string
	Mode     int64
	UID, GID int
	Xattrs   map[string]string
	Dev      int64 // major of a device; the minor is 1
	Time     time.Time
}

func (e f) header() *tar.Header {
	h := &tar.Header{
		Name: e.Name, Typeflag: e.Type, Linkname: e.Link, Mode: e.Mode, Uid: e.UID, Gid: e.GID,
		Devmajor: e.Dev, ModTime: e.Time, Size: int64(len(e.Content)), Format: tar.FormatPAX,
	}
	if e.Dev != 0 {
		h.Devminor = 1
	}
	if h.ModTime.IsZero() {
		h.ModTime = time.Unix(1700000000, 0)
	}
	isDir := len(e.Name) > 0 && e.Name[len(e.Name)-1] == '/'
	switch {
	case h.Typeflag != 0:
	case isDir:
		h.Typeflag = tar.TypeDir
	case e.Link != "":
		h.Typeflag = tar.TypeSymlink
	default:
		h.Typeflag = tar.TypeReg
	}
	if h.Mode == 0 {
		h.Mode = 0o644
		if isDir {
			h.Mode = 0o755
		}
	}
	if len(e.Xattrs) > 0 {
		h.PAXRecords = map[string]string{}
		for k, v := range e.Xattrs {
			h.PAXRecords["SCHILY.xattr."+k] = v
		}
	}
	return h
}

// layerTar makes a layer's tar stream.
func layerTar(t testing.TB, entries ...f) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, e := range entries {
		if err := w.WriteHeader(e.header()); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.Content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func gzipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	w.Write(b)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func zstandard(t testing.TB, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return w.EncodeAll(b, nil)
}

// img is an image to be written into a layout, with options to make it invalid.
type img struct {
	Name     string
	Layers   [][]byte // tar streams, lowest first
	Config   v1.ImageConfig
	Platform *v1.Platform // in the index; nil: none
	Arch     string       // in the config; "" means this machine's
	Compress func(testing.TB, []byte) []byte
	Edit     func(*v1.Image, *v1.Manifest)
}

// layoutDir is an OCI layout under construction.
type layoutDir struct {
	t     testing.TB
	dir   string
	index v1.Index
}

func newLayout(t testing.TB) *layoutDir {
	t.Helper()
	l := &layoutDir{t: t, dir: t.TempDir(), index: v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex}}
	if err := os.MkdirAll(filepath.Join(l.dir, "blobs/sha256"), 0o755); err != nil {
		t.Fatal(err)
	}
	l.write("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	return l
}

func (l *layoutDir) write(name string, b []byte) {
	l.t.Helper()
	if err := os.WriteFile(filepath.Join(l.dir, name), b, 0o644); err != nil {
		l.t.Fatal(err)
	}
}

func (l *layoutDir) blob(mediaType string, b []byte) v1.Descriptor {
	l.t.Helper()
	d := digest.FromBytes(b)
	l.write("blobs/sha256/"+d.Encoded(), b)
	return v1.Descriptor{MediaType: mediaType, Digest: d, Size: int64(len(b))}
}

func (l *layoutDir) json(mediaType string, v any) v1.Descriptor {
	l.t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		l.t.Fatal(err)
	}
	return l.blob(mediaType, b)
}

// image writes an image's blobs and returns its manifest's descriptor.
func (l *layoutDir) image(i img) v1.Descriptor {
	l.t.Helper()
	if i.Arch == "" {
		i.Arch = runtime.GOARCH
	}
	config := v1.Image{Platform: v1.Platform{OS: "linux", Architecture: i.Arch}, Config: i.Config, RootFS: v1.RootFS{Type: "layers"}}
	m := v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest}
	for _, layer := range i.Layers {
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, digest.FromBytes(layer))
		stored, mediaType := layer, v1.MediaTypeImageLayer
		if i.Compress != nil {
			stored, mediaType = i.Compress(l.t, layer), v1.MediaTypeImageLayerGzip
		}
		m.Layers = append(m.Layers, l.blob(mediaType, stored))
	}
	if i.Edit != nil {
		i.Edit(&config, &m)
	}
	if m.Config.Digest == "" {
		m.Config = l.json(v1.MediaTypeImageConfig, config)
	}
	d := l.json(v1.MediaTypeImageManifest, m)
	d.Platform = i.Platform
	if i.Name != "" {
		d.Annotations = map[string]string{v1.AnnotationRefName: i.Name}
	}
	return d
}

// add writes an image and lists it in the index.
func (l *layoutDir) add(i img) *layoutDir {
	l.t.Helper()
	l.index.Manifests = append(l.index.Manifests, l.image(i))
	return l
}

// path writes the index and returns the layout's directory.
func (l *layoutDir) path() string {
	l.t.Helper()
	b, err := json.Marshal(l.index)
	if err != nil {
		l.t.Fatal(err)
	}
	l.write("index.json", b)
	return l.dir
}

// tarFile packs a directory into a tar file.
func tarFile(t testing.TB, dir string, compress func(testing.TB, []byte) []byte) string {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	if err := w.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b := buf.Bytes()
	if compress != nil {
		b = compress(t, b)
	}
	path := filepath.Join(t.TempDir(), "archive")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// skopeo runs skopeo.
func skopeo(t testing.TB, args ...string) {
	t.Helper()
	cmd := exec.Command("skopeo", append([]string{"--insecure-policy", "--tmpdir", t.TempDir()}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("skopeo %q: %v\n%s", args, err, out)
	}
}

// testStore is a store with the work of the image program in this process.
type testStore struct {
	*Store
	engine
}

type engine struct{ server.Backend }

func openStore(dir string) (*testStore, error) {
	s, err := Open(dir, nil)
	if err != nil {
		return nil, err
	}
	e := server.New(s.Store)
	s.backend = e
	return &testStore{s, engine{e}}, nil
}

func newStore(t testing.TB) *testStore {
	t.Helper()
	s, err := openStore(filepath.Join(tempDir(t), "images"))
	if err != nil {
		t.Fatal(err)
	}
	s.Retry = shortPatience()
	return s
}

// load loads a file that must have one image.
func load(t testing.TB, s *testStore, path string) pod.Image {
	t.Helper()
	images, err := s.Load(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	if len(images) != 1 {
		t.Fatalf("loaded %d images, want 1", len(images))
	}
	return images[0]
}

// content lists everything in a store but its lock files.
func content(t testing.TB, s *testStore) []string {
	t.Helper()
	var list []string
	for _, dir := range []string{records.ImagesDir, records.NamesDir, records.LayersDir, records.StagingDir} {
		entries, err := os.ReadDir(filepath.Join(s.Dir, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if filepath.Ext(e.Name()) != ".lock" {
				list = append(list, dir+"/"+e.Name())
			}
		}
	}
	return list
}

// newFastGzip returns a writer with the fastest compression.
func newFastGzip(w io.Writer) *gzip.Writer {
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return z
}

// here returns this machine's architecture.
func here() string { return runtime.GOARCH }
