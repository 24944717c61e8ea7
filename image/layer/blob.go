package layer

import (
	"context"
	"io"

	"github.com/opencontainers/go-digest"
)

// Blob describes a layer in its source.
type Blob struct {
	DiffID digest.Digest // of the tar stream; "" if not known yet
	Digest digest.Digest // of the blob; "" if only DiffID is known
	Size   int64         // of the blob; -1 if unknown
	File   string        // the blob is the content of one file with this path; "": it is a tar stream
	Open   func(ctx context.Context) (io.ReadCloser, error)
	// OpenAt opens the blob in a registry, from an offset on; nil if its source is on this machine.
	OpenAt func(ctx context.Context, offset int64) (io.ReadCloser, error)
}

// Name returns the layer's name for progress and errors.
func (b Blob) Name() string {
	if b.Digest != "" {
		return b.Digest.String()
	}
	return b.DiffID.String()
}
