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

// blobReader reads a blob of a known digest and size and is at its end an error
// unless both were right. A digest of "" and a size of -1 are not checked.
type blobReader struct {
	r      io.Reader
	digest digest.Digest
	size   int64

	hash     hash.Hash
	n        int64
	Progress func(n int64) // may be nil
}

// NewBlobReader checks the digest and the size of what is read from r.
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

// verify is to be called when the blob was read to its end.
func (b *blobReader) verify() error {
	if b.size >= 0 && b.n < b.size {
		return fmt.Errorf("blob ends after %d of %d bytes: %w", b.n, b.size, io.ErrUnexpectedEOF)
	}
	if b.digest == "" {
		return nil
	}
	if got := digest.NewDigest(digest.SHA256, b.hash); got != b.digest {
		return report.New(report.Failure, "the data was changed on its way or in its archive: fetch or save it again", "%w", &BlobMismatchError{want: b.digest, got: got})
	}
	return nil
}

// A zstd stream says how much of what it has brought it may refer back to, its window:
// that much memory it takes. Everybody has to know 8 MiB (RFC 8878); zstd --ultra goes
// beyond.
const (
	minWindow = 8 << 20
	maxWindow = 24 << 20
)

// compressedStream is what a blob is made of.
type compressedStream struct {
	r      *bufio.Reader
	format string // "gzip", "zstd", or "" for neither
	window int64  // of zstd: bytes of memory
}

// detectFormat tells what a stream is from its beginning.
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
		if h.Decode(magic) == nil { // else the decoder says what is wrong
			s.window = max(s.window, windowOf(h))
		}
		if s.window > maxWindow {
			return nil, report.New(report.Failure, "compress it again, with zstd -19 or less and --long=24 or less",
				"its zstd window size of %d bytes is more than the %d that may be used here", s.window, maxWindow)
		}
	case bytes.HasPrefix(magic, []byte("\xfd7zXZ\x00")):
		return nil, report.New(report.Usage, "xz -d FILE", "xz compression is not supported")
	case bytes.HasPrefix(magic, []byte("BZh")):
		return nil, report.New(report.Usage, "bzip2 -d FILE", "bzip2 compression is not supported")
	}
	return s, nil
}

// windowOf is the window of a frame. One in a single segment has all of itself in it.
func windowOf(h zstd.Header) int64 {
	n := h.WindowSize
	if h.SingleSegment {
		n = h.FrameContentSize
	}
	return int64(min(n, math.MaxInt64))
}

// decompress undoes what look has found. The caller closes it.
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

// Decompress undoes gzip or zstd. What is neither goes through as it is. The caller
// closes it.
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

// BlobMismatchError is the error of a blob that is not what its digest or size says.
type BlobMismatchError struct {
	want, got digest.Digest // "" if it is the size that is wrong
	size      int64
}

func (e *BlobMismatchError) Error() string {
	if e.want == "" {
		return fmt.Sprintf("blob is longer than its %d bytes", e.size)
	}
	return fmt.Sprintf("blob is %s instead of %s", e.got, e.want)
}
