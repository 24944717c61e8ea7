package image

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
)

// FuzzLayer: no stream crashes or hangs those who read a layer, whatever it is compressed by;
// what they let through keeps the limits, and the recipe that they write has all that was read.
func FuzzLayer(f *testing.F) {
	for _, seed := range layerSeeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		z, err := decompress(bytes.NewReader(data))
		if err != nil {
			return
		}
		defer z.Close()
		var text bytes.Buffer
		rec := newRecorder(io.LimitReader(z, 1<<20), &text)
		flt := &filter{limits: limits{Bytes: 1 << 17, Entries: 100}, uids: idMap{{0, 2}}, gids: idMap{{0, 1000}}}
		p := &parts{r: rec, most: 3}
		err = readParts(p, rec, flt)
		tarError(err, flt.count.Entries)
		if flt.count.Bytes > flt.limits.Bytes {
			t.Fatalf("%d bytes of at most %d", flt.count.Bytes, flt.limits.Bytes)
		}
		rec.sparse = nil // nothing is unpacked that could be read again
		if err := rec.close(); err != nil {
			t.Fatal(err)
		}
		if have := recipeSize(t, &text); have != p.n {
			t.Fatalf("the recipe has %d of %d bytes", have, p.n)
		}
	})
}

// readParts reads a layer as archive.Apply does, and unpacks nothing.
func readParts(p *parts, rec *recorder, flt *filter) error {
	w := whiteouts{deleted: map[string]bool{}, opaque: map[string]bool{}}
	for p.next() {
		for r := tar.NewReader(p); ; {
			hdr, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
			rec.entry(hdr)
			p.entry(hdr)
			hdr.Name = filepath.Clean(hdr.Name)
			taken, err := flt.entry(hdr)
			if err != nil {
				return err
			}
			if !taken {
				continue
			}
			if _, err := w.convert(hdr, filepath.Join("/", hdr.Name)); err != nil {
				return err
			}
			if _, err := io.Copy(io.Discard, r); err != nil {
				return err
			}
		}
	}
	for path := range w.deleted {
		w.hidden(path)
	}
	return nil
}

// recipeSize is how much of a stream a recipe has or names.
func recipeSize(t *testing.T, r io.Reader) (n int64) {
	t.Helper()
	c, err := openRecipe(r)
	if err != nil {
		t.Fatal(err)
	}
	for {
		e, err := c.next()
		if err == io.EOF {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
		if n += int64(len(e.raw)); e.kind == payloadRecord {
			n += e.size
		}
	}
}

func layerSeeds(f *testing.F) [][]byte {
	f.Helper()
	var plain bytes.Buffer
	w := tar.NewWriter(&plain)
	for _, hdr := range []tar.Header{
		{Typeflag: tar.TypeDir, Name: "./", Mode: 0o755}, {Typeflag: tar.TypeDir, Name: "a/", Mode: 0o1777, Uid: 70_000},
		{Typeflag: tar.TypeReg, Name: "a/../../f", Mode: 0o4755, Size: 3, PAXRecords: map[string]string{xattrPrefix + "user.x": "y"}},
		{Typeflag: tar.TypeSymlink, Name: "l", Linkname: "../../etc"}, {Typeflag: tar.TypeLink, Name: "h", Linkname: "/l"},
		{Typeflag: tar.TypeReg, Name: "a/.wh..wh..opq"}, {Typeflag: tar.TypeReg, Name: ".wh.b"}, {Typeflag: tar.TypeChar, Name: "c"},
		{Typeflag: tar.TypeReg, Name: strings.Repeat("n", 300), Size: 1},
	} {
		if err := w.WriteHeader(&hdr); err != nil {
			f.Fatal(err)
		}
		if _, err := io.CopyN(w, strings.NewReader("abcdef"), hdr.Size); err != nil {
			f.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	var zipped, zstded bytes.Buffer
	g := gzip.NewWriter(&zipped)
	z, err := zstd.NewWriter(&zstded)
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range []io.WriteCloser{g, z} {
		if _, err := c.Write(plain.Bytes()); err != nil {
			f.Fatal(err)
		}
		if err := c.Close(); err != nil {
			f.Fatal(err)
		}
	}
	return [][]byte{plain.Bytes(), zipped.Bytes(), zstded.Bytes(), {0x1f, 0x8b}, {0x28, 0xb5, 0x2f, 0xfd, 0xff, 0xff}, nil}
}

// told is a source that returns what it is told.
type told struct{ raw, config []byte }

func (s told) manifest(_ context.Context, d digest.Digest) ([]byte, string, error) {
	return s.raw, "", nil
}
func (s told) blob(context.Context, digest.Digest, int64) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(s.config)), nil
}

// FuzzImage: no manifest and no config of an image crash those who read them. What is taken has a
// config of its digest, and a layer of a digest for each of it.
func FuzzImage(f *testing.F) {
	config := fmt.Sprintf(`{"architecture":%q,"os":"linux","config":{"User":"1:2","Env":["A=b","C"],"Entrypoint":["/a"],"ExposedPorts":{"80/tcp":{}},"Volumes":{"/v":{}}},"rootfs":{"type":"layers","diff_ids":["sha256:%064d"]},"history":[{"created_by":"x"}]}`, runtime.GOARCH, 1)
	layer := fmt.Sprintf(`{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","size":3,"digest":"sha256:%064d"}`, 2)
	manifest := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":%q,"size":%d},"layers":[%s]}`, digest.FromString(config), len(config), layer)
	f.Add([]byte(manifest), []byte(config))
	f.Add([]byte(`{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","size":1,"digest":"sha256:a","platform":{"os":"linux"}}]}`), []byte(`{"rootfs":{"type":"layers"}}`))
	f.Add([]byte(`[{"Config":"a.json","RepoTags":["a:b"],"Layers":["x/layer.tar"]}]`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, raw, config []byte) {
		none := func(digest.Digest) []byte { return nil }
		if c, err := fetch(t.Context(), told{raw, config}, none); err == nil {
			checkCandidate(t, c)
		}
		// The same config by a manifest that names it.
		var about struct {
			RootFS struct {
				DiffIDs []digest.Digest `json:"diff_ids"`
			} `json:"rootfs"`
		}
		if json.Unmarshal(config, &about) != nil || len(about.RootFS.DiffIDs) > 2*200 {
			return
		}
		layers := strings.TrimSuffix(strings.Repeat(layer+",", len(about.RootFS.DiffIDs)), ",")
		named := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":%q,"size":%d},"layers":[%s]}`, digest.FromBytes(config), len(config), layers)
		if c, err := fetch(t.Context(), told{[]byte(named), config}, none); err == nil {
			checkCandidate(t, c)
			if _, err := (&imageRecord{Config: string(c.config)}).config(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func checkCandidate(t *testing.T, c *candidate) {
	t.Helper()
	if len(c.layers) > 200 {
		t.Fatalf("%d layers", len(c.layers))
	}
	for _, l := range c.layers {
		if checkDigest(l.DiffID) != nil || checkDigest(l.Digest) != nil || l.Size < 0 {
			t.Fatalf("layer %+v", l)
		}
	}
}
