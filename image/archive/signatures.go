package archive

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podrun/podrun/image/ingest"
	"github.com/podrun/podrun/image/policy"
)

// In an OCI layout the signatures of an image are manifests of the index, as `cosign save`, `oras cp -r` and `skopeo copy` of
// the tag with the signatures write them. The layers are the signatures, or statements about the image.

// signatureTypes begin the media types of such layers.
var signatureTypes = []string{policy.CosignType, policy.BundleType, "application/vnd.dsse.envelope"}

// attached is a manifest whose layers are about an image.
type attached struct {
	v1.Manifest
	name string // in the index; "" if it has none
}

// splitSignatures separates the manifests of signatures and statements in an index from the images.
func splitSignatures(f files, entries []v1.Descriptor) (images []v1.Descriptor, about []attached) {
	for _, d := range entries {
		raw, ok := blobOf(f, d.Digest.String())
		m := attached{name: d.Annotations[v1.AnnotationRefName]}
		kind, err := ingest.CheckManifest(raw, d.MediaType)
		if !ok || err != nil || kind != v1.MediaTypeImageManifest || json.Unmarshal(raw, &m.Manifest) != nil || !m.isAbout() {
			images = append(images, d)
			continue
		}
		about = append(about, m)
	}
	return images, about
}

// isAbout reports whether the layers are signatures and statements.
func (m attached) isAbout() bool {
	isOther := func(l v1.Descriptor) bool {
		return !slices.ContainsFunc(signatureTypes, func(t string) bool { return strings.HasPrefix(l.MediaType, t) })
	}
	return len(m.Layers) > 0 && !slices.ContainsFunc(m.Layers, isOther)
}

// isOf reports whether a manifest may be about an image with these digests: by its subject, or by the tag of cosign 2. Without
// either, as `cosign save` writes it, the signatures tell.
func (m attached) isOf(digests []digest.Digest) bool {
	return slices.ContainsFunc(digests, func(d digest.Digest) bool {
		if m.Subject != nil {
			return m.Subject.Digest == d
		}
		return !strings.HasSuffix(m.name, ".sig") || strings.HasSuffix(m.name, "sha256-"+d.Encoded()+".sig")
	})
}

// signed returns an image of a layout with its signatures, of which it reads a limited number of bytes.
func signed(f files, about []attached, c *ingest.Candidate) policy.Signed {
	digests := slices.Compact([]digest.Digest{c.Top, digest.FromBytes(c.Manifest)})
	bundles := map[digest.Digest][][]byte{}
	image := policy.Signed{Manifest: c.Manifest, Referrers: policy.Referrers{Digests: digests, Bundles: func(_ context.Context, of digest.Digest) ([][]byte, error) {
		return bundles[of], nil
	}}}
	left := ingest.MaxJSON
	for _, m := range about {
		if !m.isOf(digests) {
			continue
		}
		for _, l := range m.Layers {
			text, ok := blobOf(f, l.Digest.String())
			if left -= len(text); !ok || left < 0 {
				continue
			}
			switch {
			case l.MediaType == policy.CosignType:
				image.Signatures = append(image.Signatures, policy.Signature{MIMEType: l.MediaType, Payload: text, Annotations: l.Annotations})
			case strings.HasPrefix(l.MediaType, policy.BundleType) && m.Subject != nil:
				bundles[m.Subject.Digest] = append(bundles[m.Subject.Digest], text)
			}
		}
	}
	return image
}
