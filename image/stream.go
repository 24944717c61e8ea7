package image

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"

	"github.com/podrun/podrun/internal/report"
)

// blobReader reads a blob of a known digest and size and is at its end an error
// unless both were right. A digest of "" and a size of -1 are not checked.
type blobReader struct {
	r      io.Reader
	digest digest.Digest
	size   int64

	hash hash.Hash
	n    int64
	told func(n int64) // may be nil
}

func newBlobReader(r io.Reader, d digest.Digest, size int64) *blobReader {
	return &blobReader{r: r, digest: d, size: size, hash: sha256.New()}
}

func (b *blobReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.n += int64(n)
	if b.digest != "" {
		b.hash.Write(p[:n])
	}
	if b.told != nil {
		b.told(b.n)
	}
	switch {
	case b.size >= 0 && b.n > b.size:
		return 0, fmt.Errorf("blob is longer than its %d bytes", b.size)
	case err == io.EOF:
		if verr := b.verify(); verr != nil {
			return 0, verr
		}
	}
	return n, err
}

// verify is to be called when the blob was read to its end.
func (b *blobReader) verify() error {
	if b.size >= 0 && b.n < b.size {
		return fmt.Errorf("blob ends after %d of %d bytes: %w", b.n, b.size, io.ErrUnexpectedEOF)
	}
	if b.digest == "" {
		return nil
	}
	if got := digest.NewDigest(digest.SHA256, b.hash); got != b.digest {
		return report.New(report.Failure, "the data was changed on its way or in its archive: fetch or save it again", "blob is %s instead of %s", got, b.digest)
	}
	return nil
}

// maxWindow bounds the memory a zstd stream may ask for. The format recommends
// 8 MiB as the most to rely on; zstd --ultra goes beyond.
const maxWindow = 32 << 20

// decompress looks at the beginning of a stream and undoes gzip or zstd. What is
// neither goes through as it is. The caller closes it.
func decompress(r io.Reader) (io.ReadCloser, error) {
	buf := bufio.NewReaderSize(r, 64<<10)
	magic, err := buf.Peek(6)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		return gzip.NewReader(buf)
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		d, err := zstd.NewReader(buf, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	case bytes.HasPrefix(magic, []byte("\xfd7zXZ\x00")):
		return nil, report.New(report.Usage, "xz -d FILE", "xz compression is not supported")
	case bytes.HasPrefix(magic, []byte("BZh")):
		return nil, report.New(report.Usage, "bzip2 -d FILE", "bzip2 compression is not supported")
	}
	return plainReader{buf}, nil
}

// plainReader is a stream that was not compressed.
type plainReader struct{ io.Reader }

func (plainReader) Close() error { return nil }
