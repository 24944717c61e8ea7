package layer

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"math"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"

	"github.com/podrun/podrun/internal/report"
)

// blobReader reads a blob of a known digest and size. At the end it returns an error unless both match. A
// digest of "" and a size of -1 are not checked.
type blobReader struct {
	r      io.Reader
	digest digest.Digest
	size   int64

	hash     hash.Hash
	n        int64
	Progress func(n int64) // may be nil
}

// NewBlobReader returns a reader that checks the digest and the size of r.
func NewBlobReader(r io.Reader, d digest.Digest, size int64) *blobReader {
	return &blobReader{r: r, digest: d, size: size, hash: sha256.New()}
}

func (b *blobReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.n += int64(n)
	if b.digest != "" {
		b.hash.Write(p[:n])
	}
	if b.Progress != nil {
		b.Progress(b.n)
	}
	switch {
	case b.size >= 0 && b.n > b.size:
		return 0, &BlobMismatchError{size: b.size}
	case err == io.EOF:
		if verr := b.verify(); verr != nil {
			return 0, verr
		}
	}
	return n, err
}

// verify checks size and digest after the blob was read to its end.
func (b *blobReader) verify() error {
	if b.size >= 0 && b.n < b.size {
		return fmt.Errorf("blob ends after %d of %d bytes: %w", b.n, b.size, io.ErrUnexpectedEOF)
	}
	if b.digest == "" {
		return nil
	}
	if got := digest.NewDigest(digest.SHA256, b.hash); got != b.digest {
		return report.New(report.Failure, "the data was changed in transit or in its archive: pull or save it again", "%w", &BlobMismatchError{want: b.digest, got: got})
	}
	return nil
}

// A zstd stream declares its window: how far back it may refer. A decoder needs that much memory. Every
// decoder must support 8 MiB (RFC 8878); zstd --ultra uses more.
const (
	minWindow = 8 << 20
	maxWindow = 24 << 20
)

// compressedStream is a blob's data with its detected format.
type compressedStream struct {
	r      *bufio.Reader
	format string // "gzip", "zstd", or "" for neither
	window int64  // of zstd: bytes of memory
}

// detectFormat detects the format of a stream from its beginning.
func detectFormat(r io.Reader) (*compressedStream, error) {
	s := &compressedStream{r: bufio.NewReaderSize(r, 64<<10)}
	magic, err := s.r.Peek(zstd.HeaderMaxSize)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		s.format = "gzip"
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		s.format, s.window = "zstd", minWindow
		var h zstd.Header
		if h.Decode(magic) == nil { // otherwise the decoder reports the error
			s.window = max(s.window, windowOf(h))
		}
		if s.window > maxWindow {
			return nil, report.New(report.Failure, "compress it again, with zstd -19 or less and --long=24 or less",
				"its zstd window size of %d bytes is more than the %d that are allowed", s.window, maxWindow)
		}
	case bytes.HasPrefix(magic, []byte("\xfd7zXZ\x00")):
		return nil, report.New(report.Usage, "xz -d FILE", "xz compression is not supported")
	case bytes.HasPrefix(magic, []byte("BZh")):
		return nil, report.New(report.Usage, "bzip2 -d FILE", "bzip2 compression is not supported")
	}
	return s, nil
}

// windowOf returns the window of a frame. For a single segment it is the whole content.
func windowOf(h zstd.Header) int64 {
	n := h.WindowSize
	if h.SingleSegment {
		n = h.FrameContentSize
	}
	return int64(min(n, math.MaxInt64))
}

// decompress returns the decompressed stream. The caller closes it.
func (s *compressedStream) decompress() (io.ReadCloser, error) {
	switch s.format {
	case "gzip":
		return gzip.NewReader(s.r)
	case "zstd":
		d, err := zstd.NewReader(s.r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(uint64(s.window)))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}
	return Uncompressed{s.r}, nil
}

// Decompress decompresses gzip or zstd. Other data passes unchanged. The caller closes the result.
func Decompress(r io.Reader) (io.ReadCloser, error) {
	s, err := detectFormat(r)
	if err != nil {
		return nil, err
	}
	return s.decompress()
}

// Uncompressed is a stream that was not compressed.
type Uncompressed struct{ io.Reader }

func (Uncompressed) Close() error { return nil }

// BlobMismatchError is the error of a blob that does not match its digest or size.
type BlobMismatchError struct {
	want, got digest.Digest // "" if the size is wrong
	size      int64
}

// Error returns the digests, or the size that the blob exceeds.
func (e *BlobMismatchError) Error() string {
	if e.want == "" {
		return fmt.Sprintf("blob is longer than its %d bytes", e.size)
	}
	return fmt.Sprintf("blob is %s instead of %s", e.got, e.want)
}
