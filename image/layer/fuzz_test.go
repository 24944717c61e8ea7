package layer

import (
	"archive/tar"
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// FuzzLayer: no stream crashes or hangs the readers of a layer, with any compression. Accepted entries keep
// the limits, and the recipe covers every byte that was read.
func FuzzLayer(f *testing.F) {
	for _, seed := range layerSeeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		z, err := Decompress(bytes.NewReader(data))
		if err != nil {
			return
		}
		defer z.Close()
		var text bytes.Buffer
		rec := newRecipeWriter(io.LimitReader(z, 1<<20), &text)
		flt := &filter{limits: Limits{Bytes: 1 << 17, Entries: 100}, uids: idMap{{0, 2}}, gids: idMap{{0, 1000}}}
		p := &tarParts{r: rec, maxEntries: 3}
		err = readParts(p, rec, flt)
		DescribeTarError(err, flt.count.Entries)
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
func readParts(p *tarParts, rec *recipeWriter, flt *filter) error {
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

// recipeSize returns how many bytes of a stream a recipe has or names.
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
