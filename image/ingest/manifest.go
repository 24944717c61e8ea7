package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"unicode/utf8"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/podrun/podrun/image/layer"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/internal/report"
)

// source provides one image. Its results are not verified.
type source interface {
	// Manifest returns the manifest with a digest, or for "" the source's own, with its media type or
	// "".
	Manifest(ctx context.Context, d digest.Digest) ([]byte, string, error)
	// Blob opens a blob of the given size.
	Blob(ctx context.Context, d digest.Digest, size int64) (io.ReadCloser, error)
}

type remote interface {
	// BlobFrom opens a blob of the given size from an offset on.
	BlobFrom(ctx context.Context, d digest.Digest, size, offset int64) (io.ReadCloser, error)
	// Allowed returns an error unless the image whose manifest has this digest may be used; "" is the
	// source's own manifest.
	Allowed(ctx context.Context, d digest.Digest) error
}

// Candidate is an image to be added, without the layers' content.
type Candidate struct {
	Top       digest.Digest // what the name stands for: an index, or the manifest
	Index     []byte        // the text of Top, if Top is not the manifest
	Pulled    bool          // from a registry
	Manifest  []byte        // nil: to be made from config and layers
	MediaType string
	Artifact  string       // the type of an OCI artifact; "": a container image
	Config    []byte       // nil for an artifact: to be made from its layers
	Layers    []layer.Blob // lowest first; one for each diffID of config
}

// ReadImage reads an image's manifest, the one for this machine's platform if there are several, and its
// config. known returns the config of an image that is in the store already, or nil.
func ReadImage(ctx context.Context, src source, known func(id digest.Digest) []byte) (*Candidate, error) {
	raw, mediaType, err := src.Manifest(ctx, "")
	if err != nil {
		return nil, err
	}
	c := &Candidate{Top: digest.FromBytes(raw)}
	for depth := 0; ; depth++ {
		if mediaType, err = CheckManifest(raw, mediaType); err != nil {
			return nil, err
		}
		if !manifest.MIMETypeIsMultiImage(mediaType) {
			break
		}
		if depth == 0 {
			c.Index = raw
		}
		if depth == 2 {
			return nil, errors.New("read index: indexes of indexes of indexes are not supported")
		}
		if raw, mediaType, err = readChosen(ctx, src, raw, mediaType); err != nil {
			return nil, err
		}
	}
	c.Manifest, c.MediaType = raw, mediaType
	if far, ok := src.(remote); ok {
		d := digest.FromBytes(raw)
		if d == c.Top {
			d = ""
		}
		if err := far.Allowed(ctx, d); err != nil {
			return nil, err
		}
	}
	m, err := manifest.FromBlob(raw, mediaType)
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	if c.Artifact = ArtifactType(m); c.Artifact != "" {
		return c, c.readFiles(src, m)
	}
	if err := c.readConfig(ctx, src, m, known); err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	return c, c.readLayers(src, m)
}

// readChosen reads the manifest for this machine's platform from an index.
func readChosen(ctx context.Context, src source, raw []byte, mediaType string) ([]byte, string, error) {
	d, err := choosePlatform(nil, raw, mediaType)
	if err != nil {
		return nil, "", err
	}
	chosen, chosenType, err := src.Manifest(ctx, d)
	if err != nil {
		return nil, "", err
	}
	if got := digest.FromBytes(chosen); got != d {
		return nil, "", fmt.Errorf("read manifest: it is %s instead of %s", got, d)
	}
	return chosen, chosenType, nil
}

// manifestTypes are the supported media types.
var manifestTypes = map[string]bool{
	v1.MediaTypeImageIndex: true, v1.MediaTypeImageManifest: true,
	manifest.DockerV2ListMediaType: true, manifest.DockerV2Schema2MediaType: true,
}

// CheckManifest returns the media type of raw. A document that two programs may read as different kinds is
// refused (CVE-2021-41190).
func CheckManifest(raw []byte, declared string) (string, error) {
	if err := checkDocument(raw); err != nil {
		return "", fmt.Errorf("read manifest: %w", err)
	}
	var m struct {
		MediaType string          `json:"mediaType"`
		Config    json.RawMessage `json:"config"`
		Layers    json.RawMessage `json:"layers"`
		Manifests json.RawMessage `json:"manifests"`
		FSLayers  json.RawMessage `json:"fsLayers"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return "", fmt.Errorf("read manifest: %w", err)
	}
	if !utf8.Valid(raw) {
		return "", errors.New("read manifest: it is not UTF-8")
	}
	kind, _, err := mime.ParseMediaType(declared)
	if err != nil || !manifestTypes[kind] {
		kind = manifest.GuessMIMEType(raw)
	}
	index := m.Manifests != nil
	switch {
	case m.FSLayers != nil || kind == manifest.DockerV2Schema1MediaType || kind == manifest.DockerV2Schema1SignedMediaType:
		return "", report.New(report.Failure, "push the image again with a current client", "read manifest: Docker schema 1 is not supported")
	case !manifestTypes[kind]:
		return "", fmt.Errorf("read manifest: media type %q is not an image's", declared)
	case m.MediaType != "" && m.MediaType != kind,
		index != manifest.MIMETypeIsMultiImage(kind),
		index && (m.Config != nil || m.Layers != nil):
		return "", fmt.Errorf("read manifest: it is ambiguous: declared %q, calls itself %q", kind, m.MediaType)
	}
	return kind, nil
}

func (c *Candidate) readConfig(ctx context.Context, src source, m manifest.Manifest, known func(digest.Digest) []byte) error {
	info := m.ConfigInfo()
	if !configTypes[info.MediaType] {
		return fmt.Errorf("media type %q is not a container image's", info.MediaType)
	}
	if err := records.CheckDigest(info.Digest); err != nil {
		return err
	}
	if c.Config = known(info.Digest); c.Config != nil {
		return nil
	}
	if info.Size < 0 || info.Size > MaxJSON {
		return fmt.Errorf("its size of %d bytes is not within %d", info.Size, MaxJSON)
	}
	rc, err := src.Blob(ctx, info.Digest, info.Size)
	if err != nil {
		return err
	}
	defer rc.Close()
	c.Config, err = io.ReadAll(LimitDocument(layer.NewBlobReader(rc, info.Digest, info.Size)))
	return err
}

// configTypes are the media types of the configs of container images.
var configTypes = map[string]bool{v1.MediaTypeImageConfig: true, manifest.DockerV2Schema2ConfigMediaType: true}

// layerTypes are the media types of layers. Compression is detected from the content.
var layerTypes = map[string]bool{
	v1.MediaTypeImageLayer: true, v1.MediaTypeImageLayerGzip: true, v1.MediaTypeImageLayerZstd: true,
	v1.MediaTypeImageLayerNonDistributable: true, v1.MediaTypeImageLayerNonDistributableGzip: true, v1.MediaTypeImageLayerNonDistributableZstd: true, //nolint:staticcheck // old images have them
	manifest.DockerV2Schema2LayerMediaType: true, manifest.DockerV2SchemaLayerMediaTypeUncompressed: true,
	manifest.DockerV2Schema2ForeignLayerMediaType: true, manifest.DockerV2Schema2ForeignLayerMediaTypeGzip: true,
}

// readLayers matches the manifest's blobs with the config's diffIDs.
func (c *Candidate) readLayers(src source, m manifest.Manifest) error {
	diffIDs, err := records.CheckConfig(c.Config)
	if err != nil {
		return err
	}
	infos := m.LayerInfos()
	if len(infos) != len(diffIDs) {
		return fmt.Errorf("read manifest: it has %d layers and the config %d", len(infos), len(diffIDs))
	}
	for i, info := range infos {
		if !layerTypes[info.MediaType] {
			return fmt.Errorf("read manifest: layers of media type %q are not supported", info.MediaType)
		}
		b, err := blobOf(src, info)
		if err != nil {
			return err
		}
		b.DiffID = diffIDs[i]
		c.Layers = append(c.Layers, b)
	}
	return nil
}

// blobOf returns a manifest's layer, without a diffID.
func blobOf(src source, info manifest.LayerInfo) (layer.Blob, error) {
	if err := records.CheckDigest(info.Digest); err != nil {
		return layer.Blob{}, fmt.Errorf("read manifest: %w", err)
	}
	if info.Size < 0 {
		return layer.Blob{}, fmt.Errorf("read manifest: layer %s has no size", info.Digest)
	}
	b := layer.Blob{
		Digest: info.Digest, Size: info.Size,
		Open: func(ctx context.Context) (io.ReadCloser, error) { return src.Blob(ctx, info.Digest, info.Size) },
	}
	if far, ok := src.(remote); ok {
		b.OpenAt = func(ctx context.Context, offset int64) (io.ReadCloser, error) {
			return far.BlobFrom(ctx, info.Digest, info.Size, offset)
		}
	}
	return b, nil
}
