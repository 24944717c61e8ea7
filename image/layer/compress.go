package layer

import (
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Compress copies r to w, compressed with gzip or zstd. The same content gives the same bytes.
func Compress(w io.Writer, r io.Reader, method string) error {
	var z io.WriteCloser
	var err error
	if method == "zstd" {
		z, err = zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(8<<20))
	} else {
		z, err = gzip.NewWriterLevel(w, gzip.DefaultCompression)
	}
	if err != nil {
		return err
	}
	if _, err := io.Copy(z, r); err != nil {
		return err
	}
	return z.Close()
}
