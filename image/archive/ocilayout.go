package archive

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/podrun/podrun/image/ingest"
	"github.com/podrun/podrun/image/records"
)

// nameAnnotations are the annotations with an image's name in an OCI layout, the most reliable first.
var nameAnnotations = []string{"io.containerd.image.name", v1.AnnotationRefName}

// layoutImages lists the images of an OCI layout
// (https://github.com/opencontainers/image-spec/blob/main/image-layout.md). Several entries with one name
// that each declare a platform are one image for several platforms. Signatures are no images.
func layoutImages(s *records.Store, f files, raw []byte) (list []archivedImage, about []attached, err error) {
	if _, err := ingest.CheckManifest(raw, v1.MediaTypeImageIndex); err != nil {
		return nil, nil, err
	}
	var index v1.Index
	if err := json.Unmarshal(raw, &index); err != nil {
		return nil, nil, fmt.Errorf("read index: %w", err)
	}
	images, about := splitSignatures(f, index.Manifests)
	groups := map[string][]v1.Descriptor{}
	var order []string
	for _, d := range images {
		name := layoutName(d)
		if _, ok := groups[name]; !ok {
			order = append(order, name)
		}
		groups[name] = append(groups[name], d)
	}
	for _, name := range order {
		for _, src := range layoutSources(f, groups[name]) {
			item := archivedImage{
				fetch: func(ctx context.Context) (*ingest.Candidate, error) {
					return ingest.ReadImage(ctx, src, s.ConfigOf)
				},
				restore: func(c *ingest.Candidate) { restoreOriginal(c, f, src.top) },
			}
			if name != "" {
				item.names = []string{name}
			}
			list = append(list, item)
		}
	}
	if len(list) == 0 {
		return nil, nil, fmt.Errorf("read index: there is no image in it")
	}
	return list, about, nil
}

// restoreOriginal restores the manifest and the index by whose digests podrun stored the image before it
// saved it. Both are accepted only if their digests lead to the image's config; otherwise the archive's
// manifest is used.
func restoreOriginal(c *ingest.Candidate, f files, d v1.Descriptor) {
	raw, ok := blobOf(f, d.Annotations[manifestAnnotation])
	if !ok {
		return
	}
	mediaType, err := ingest.CheckManifest(raw, "")
	if err != nil || manifest.MIMETypeIsMultiImage(mediaType) {
		return
	}
	m, err := manifest.FromBlob(raw, mediaType)
	if err != nil || m.ConfigInfo().Digest != digest.FromBytes(c.Config) || ingest.ArtifactType(m) != "" {
		return
	}
	c.Manifest, c.MediaType, c.Top, c.Index = raw, mediaType, digest.FromBytes(raw), nil
	index, ok := blobOf(f, d.Annotations[indexAnnotation])
	if !ok {
		return
	}
	if mediaType, err = ingest.CheckManifest(index, ""); err != nil || !manifest.MIMETypeIsMultiImage(mediaType) {
		return
	}
	if list, err := manifest.ListFromBlob(index, mediaType); err == nil && slices.Contains(list.Instances(), c.Top) {
		c.Top, c.Index = digest.FromBytes(index), index
	}
}

// blobOf reads a small blob and reports whether it matches its digest.
func blobOf(f files, d string) ([]byte, bool) {
	if records.CheckDigest(digest.Digest(d)) != nil {
		return nil, false
	}
	raw, err := readSmall(f, blobPath(digest.Digest(d)))
	return raw, err == nil && digest.FromBytes(raw) == digest.Digest(d)
}

// layoutName returns the image's name, or "" if there is none that is valid here: the annotation is free
// text.
func layoutName(d v1.Descriptor) string {
	for _, key := range nameAnnotations {
		if name := d.Annotations[key]; name != "" {
			if _, err := records.ParseName(name); err == nil {
				return name
			}
		}
	}
	return ""
}

// layoutSources returns sources for the entries of one name.
func layoutSources(f files, group []v1.Descriptor) []*layout {
	platforms := 0
	var single []*layout
	for _, d := range group {
		if d.Platform != nil {
			platforms++
		}
		single = append(single, &layout{files: f, top: d})
	}
	if len(group) == 1 || platforms < len(group) {
		return single
	}
	return []*layout{{files: f, all: group}}
}

// layout is the source of one image in an OCI layout: of the entry top, or of
// several for different platforms.
type layout struct {
	files files
	top   v1.Descriptor
	all   []v1.Descriptor
}

func (l *layout) Manifest(_ context.Context, d digest.Digest) ([]byte, string, error) {
	if d == "" && l.all != nil {
		raw, err := json.Marshal(v1.Index{
			Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex, Manifests: l.all,
		})
		return raw, v1.MediaTypeImageIndex, err
	}
	if d != "" {
		raw, err := l.read(d)
		return raw, "", err
	}
	raw, err := l.read(l.top.Digest)
	if err != nil {
		return nil, "", err
	}
	if got := digest.FromBytes(raw); got != l.top.Digest {
		return nil, "", fmt.Errorf("read manifest: it is %s instead of %s", got, l.top.Digest)
	}
	return raw, l.top.MediaType, nil
}

func (l *layout) read(d digest.Digest) ([]byte, error) {
	if err := records.CheckDigest(d); err != nil {
		return nil, err
	}
	raw, err := readSmall(l.files, blobPath(d))
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	return raw, nil
}

func (l *layout) Blob(_ context.Context, d digest.Digest, _ int64) (io.ReadCloser, error) {
	rc, _, err := l.files.open(blobPath(d))
	return rc, err
}

func blobPath(d digest.Digest) string { return "blobs/" + d.Algorithm().String() + "/" + d.Encoded() }
