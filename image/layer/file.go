package layer

import (
	"archive/tar"
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// tarStream returns the layer's tar stream, which may be compressed. content is the blob.
func (b Blob) tarStream(content io.Reader) (*compressedStream, error) {
	if b.File == "" {
		return detectFormat(content)
	}
	var head bytes.Buffer
	if err := tar.NewWriter(&head).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: b.File, Mode: 0o644, Size: b.Size}); err != nil {
		return nil, fmt.Errorf("file %q: %w", b.File, err)
	}
	const block = 512
	end := make([]byte, (block-b.Size%block)%block+2*block)
	return &compressedStream{r: bufio.NewReader(io.MultiReader(&head, content, bytes.NewReader(end)))}, nil
}
