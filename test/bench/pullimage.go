package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// The benchmark's image: so many layers, each of so many files of so many bytes, of which
// gzip makes about half.
const (
	pullLayers = 8
	pullFiles  = 750
	pullBytes  = 25_000
)

// writeImage writes it as an OCI layout, under the name bench.
func writeImage(dir string) error {
	w := layoutWriter{dir: dir}
	rnd := rand.New(rand.NewPCG(1, 2))
	var diffIDs []string
	var layers []any
	for l := range pullLayers {
		raw, err := benchLayer(l, rnd)
		if err != nil {
			return err
		}
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		if _, err := z.Write(raw); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		diffIDs = append(diffIDs, fmt.Sprintf("sha256:%x", sha256.Sum256(raw)))
		layers = append(layers, w.blob("application/vnd.oci.image.layer.v1.tar+gzip", packed.Bytes()))
	}
	config := w.json("application/vnd.oci.image.config.v1+json", map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "rootfs": map[string]any{"type": "layers", "diff_ids": diffIDs},
	})
	const kind = "application/vnd.oci.image.manifest.v1+json"
	top := w.json(kind, map[string]any{"schemaVersion": 2, "mediaType": kind, "config": config, "layers": layers})
	top["annotations"] = map[string]string{"org.opencontainers.image.ref.name": "bench"}
	w.file("index.json", map[string]any{"schemaVersion": 2, "manifests": []any{top}})
	w.file("oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"})
	return w.err
}

func benchLayer(l int, rnd *rand.Rand) ([]byte, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for i := range pullFiles {
		b := make([]byte, 0, pullBytes)
		for len(b) < pullBytes/2 {
			b = append(b, byte(rnd.Uint32()))
		}
		b = append(b, strings.Repeat(fmt.Sprintf("line %d of text\n", i), pullBytes/20)[:pullBytes/2]...)
		if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("l%d/d%d/f%d", l, i/50, i), Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(b))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(b); err != nil {
			return nil, err
		}
	}
	return buf.Bytes(), w.Close()
}

// layoutWriter writes the files of a layout; its first error stays.
type layoutWriter struct {
	dir string
	err error
}

func (w *layoutWriter) write(name string, b []byte) {
	path := filepath.Join(w.dir, name)
	if w.err == nil {
		w.err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if w.err == nil {
		w.err = os.WriteFile(path, b, 0o644)
	}
}

func (w *layoutWriter) file(name string, v any) {
	b, err := json.Marshal(v)
	if w.err == nil {
		w.err = err
	}
	w.write(name, b)
}

// blob writes one and gives its descriptor.
func (w *layoutWriter) blob(mediaType string, b []byte) map[string]any {
	sum := fmt.Sprintf("%x", sha256.Sum256(b))
	w.write("blobs/sha256/"+sum, b)
	return map[string]any{"mediaType": mediaType, "digest": "sha256:" + sum, "size": len(b)}
}

func (w *layoutWriter) json(mediaType string, v any) map[string]any {
	b, err := json.Marshal(v)
	if w.err == nil {
		w.err = err
	}
	return w.blob(mediaType, b)
}
