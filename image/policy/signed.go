package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"go.podman.io/image/v5/directory"
	copied "go.podman.io/image/v5/image"
	"go.podman.io/image/v5/types"
)

// The media types of signatures: cosign 2 (cosign: specs/SIGNATURE_SPEC.md), and the beginning of those of sigstore bundles
// (cosign: specs/BUNDLE_SPEC.md).
const (
	CosignType = "application/vnd.dev.cosign.simplesigning.v1+json"
	BundleType = "application/vnd.dev.sigstore.bundle"
)

// Signed is an image in a file, with the signatures beside it.
type Signed struct {
	Manifest   []byte
	Signatures []Signature // of cosign 2
	Referrers  Referrers
}

// Signature is a signature in the library's form.
type Signature struct {
	MIMEType    string            `json:"mimeType"`
	Payload     []byte            `json:"payload"`
	Annotations map[string]string `json:"annotations"`
}

// signedImage is an image in the library's terms, under the name of its file.
type signedImage struct {
	*copied.UnparsedImage
	ref fileRef
}

func (i signedImage) Reference() types.ImageReference { return i.ref }

// CheckSigned checks an image in a file or directory by its signatures. The library reads signatures only from registries and
// from its directories, so they are written to one in scratch.
func (s Checker) CheckSigned(ctx context.Context, transport, path string, image Signed, scratch string) error {
	ref, err := newFileRef(transport, path)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(scratch, "signed-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "manifest.json"), image.Manifest, 0o600); err != nil {
		return err
	}
	for i, signature := range image.Signatures {
		text, err := json.Marshal(signature)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("signature-%d", i+1)), append([]byte("\x00sigstore-json\n"), text...), 0o600); err != nil {
			return err
		}
	}
	libraryRef, err := directory.NewReference(dir)
	if err != nil {
		return err
	}
	source, err := libraryRef.NewImageSource(ctx, nil)
	if err != nil {
		return err
	}
	defer source.Close()
	return s.Check(ctx, signedImage{copied.UnparsedInstance(source, nil), ref}, &image.Referrers)
}
