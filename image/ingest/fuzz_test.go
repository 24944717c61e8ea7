package ingest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/podrun/podrun/image/records"
)

// FuzzImage: no manifest and no config of an image crash their readers. An accepted image has a config with
// its digest, and a layer with a digest for each of its diffIDs; an accepted artifact has a file for each layer.
func FuzzImage(f *testing.F) {
	config := fmt.Sprintf(`{"architecture":%q,"os":"linux","config":{"User":"1:2","Env":["A=b","C"],"Entrypoint":["/a"],"ExposedPorts":{"80/tcp":{}},"Volumes":{"/v":{}}},"rootfs":{"type":"layers","diff_ids":["sha256:%064d"]},"history":[{"created_by":"x"}]}`, runtime.GOARCH, 1)
	layer := fmt.Sprintf(`{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","size":3,"digest":"sha256:%064d"}`, 2)
	manifest := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":%q,"size":%d},"layers":[%s]}`, digest.FromString(config), len(config), layer)
	f.Add([]byte(manifest), []byte(config))
	f.Add([]byte(`{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","size":1,"digest":"sha256:a","platform":{"os":"linux"}}]}`), []byte(`{"rootfs":{"type":"layers"}}`))
	f.Add([]byte(fmt.Sprintf(`{"schemaVersion":2,"config":{"mediaType":"application/vnd.oci.empty.v1+json"},"layers":[{"mediaType":"text/plain","size":3,"digest":"sha256:%064d","annotations":{"org.opencontainers.image.title":"a/b"}}]}`, 3)), []byte(`{}`))
	f.Add([]byte(`[{"Config":"a.json","RepoTags":["a:b"],"Layers":["x/layer.tar"]}]`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, raw, config []byte) {
		none := func(digest.Digest) []byte { return nil }
		if c, err := ReadImage(t.Context(), fixedSource{raw, config}, none); err == nil {
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
		if c, err := ReadImage(t.Context(), fixedSource{[]byte(named), config}, none); err == nil {
			checkCandidate(t, c)
			if _, err := (&records.Image{Config: string(c.Config)}).DecodeConfig(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// fixedSource is a source that returns fixed documents.
type fixedSource struct{ raw, config []byte }

func (s fixedSource) Manifest(_ context.Context, d digest.Digest) ([]byte, string, error) {
	return s.raw, "", nil
}
func (s fixedSource) Blob(context.Context, digest.Digest, int64) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(s.config)), nil
}

func checkCandidate(t *testing.T, c *Candidate) {
	t.Helper()
	if len(c.Layers) > 200 {
		t.Fatalf("%d layers", len(c.Layers))
	}
	for _, l := range c.Layers {
		if (c.Artifact == "") != (records.CheckDigest(l.DiffID) == nil) || (c.Artifact == "") != (l.File == "") || records.CheckDigest(l.Digest) != nil || l.Size < 0 {
			t.Fatalf("layer %+v", l)
		}
	}
}
