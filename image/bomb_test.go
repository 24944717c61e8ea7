package image

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/image/layer"
)

func modTime(t *testing.T, path string) int64 {
	t.Helper()
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return st.ModTime().Unix()
}

// sparse returns the header of a file of 4 EiB that is one hole, as GNU tar writes it.
func sparse(t *testing.T) []byte {
	t.Helper()
	b := layerTar(t, f{Name: "sparse"})
	h := b[:512]
	h[156] = tar.TypeGNUSparse
	copy(h[257:265], "ustar  \x00")
	clear(h[386:483])
	h[483] = 0x80
	binary.BigEndian.PutUint64(h[487:495], 1<<62)
	copy(h[148:156], "        ")
	sum := 0
	for _, c := range h {
		sum += int(c)
	}
	copy(h[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

// zeros returns a layer of one file of n zero bytes, made as it is read.
func zeros(t *testing.T, n int64) io.Reader {
	t.Helper()
	var head bytes.Buffer
	w := tar.NewWriter(&head)
	if err := w.WriteHeader(&tar.Header{Name: "zeros", Typeflag: tar.TypeReg, Size: n, Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	return io.MultiReader(&head, io.LimitReader(endless{}, (n+511)/512*512+1024))
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// gzipTo compresses a stream into a file of the layout's blobs.
func gzipTo(t *testing.T, r io.Reader) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bomb.gz")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := newFastGzip(out)
	if _, err := io.Copy(w, r); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestBombs imports decompression bombs. Each must be stopped early and leave nothing behind.
func TestBombs(t *testing.T) {
	write := func(b []byte) func(t *testing.T) string {
		return func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "bomb")
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
			return path
		}
	}
	for name, tt := range map[string]struct {
		bomb   func(t *testing.T) string
		limits layer.Limits
		want   string
	}{
		"sparse": {write(sparse(t)), layer.Limits{Bytes: 128 << 30, Entries: 1000}, "the layer exceeds"},
		"256 MiB of zeros": {func(t *testing.T) string { return gzipTo(t, zeros(t, 256<<20)) },
			layer.Limits{Bytes: 64 << 20, Entries: 1000}, "the layer exceeds"},
		"256 MiB after the end": {func(t *testing.T) string {
			return gzipTo(t, io.MultiReader(bytes.NewReader(layerTar(t, f{Name: "x"})), io.LimitReader(endless{}, 256<<20)))
		}, layer.Limits{Bytes: 64 << 20, Entries: 1000}, "more than"},
		"many files": {func(t *testing.T) string {
			var entries []f
			for i := range 2000 {
				entries = append(entries, f{Name: fmt.Sprint("d/", i)})
			}
			return write(layerTar(t, entries...))(t)
		}, layer.Limits{Bytes: 64 << 20, Entries: 1000}, "more than 1000 entries"},
		"many directories": {func(t *testing.T) string {
			var entries []f
			for i := range 900 {
				entries = append(entries, f{Name: fmt.Sprint("d/", i, "/")})
			}
			return write(layerTar(t, entries...))(t)
		}, layer.Limits{Bytes: 64 << 20, Entries: 1000}, "more than 100 directories"},
		"long path":         {write(layerTar(t, f{Name: strings.Repeat("d/", 3000) + "x"})), layer.Limits{Bytes: 64 << 20, Entries: 1000}, "name too long"},
		"large zstd window": {write([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xf8, 0, 0, 0}), layer.Limits{Bytes: 64 << 20, Entries: 1000}, "window size"},
	} {
		t.Run(name, func(t *testing.T) {
			path := tt.bomb(t)
			s := newStore(t)
			s.Limits = func(string) (layer.Limits, error) { return tt.limits, nil }
			start := time.Now()
			_, err := s.Import(context.Background(), path, "bomb")
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("import: %v; want an error about %q", err, tt.want)
			}
			if took := time.Since(start); took > time.Minute {
				t.Errorf("refused after %v", took)
			}
			if left := content(t, s); len(left) > 0 {
				t.Errorf("left in the store: %v", left)
			}
		})
	}
}

// TestFullDisk imports with no free space at all.
func TestFullDisk(t *testing.T) {
	s := newStore(t)
	s.Limits = func(string) (layer.Limits, error) { return layer.Limits{Bytes: 100, Entries: 10}, nil }
	l := newLayout(t).add(img{Name: "x", Layers: [][]byte{layerTar(t, f{Name: "x", Content: "x"})}})
	if _, err := s.Load(context.Background(), l.path()); err == nil || !strings.Contains(err.Error(), "the allowed size") {
		t.Errorf("load: %v", err)
	}
	if left := content(t, s); len(left) > 0 {
		t.Errorf("left in the store: %v", left)
	}
}
