package layer

import (
	"archive/tar"
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc64"
	"io"
	"os"
	"path"
	"strings"

	"github.com/klauspost/compress/gzip"
	"golang.org/x/sys/unix"
)

// RecipeFile is the file in a layer's directory with the parts of its tar stream other than the content of
// the unpacked files. With it the stream can be made again, byte for byte. So a layer can be checked against
// its diffID, and saved, without its blob.
//
// It is compressed with gzip: recipeMagic, then records. A record is a letter and
//
//	r  raw: n (uvarint), n bytes of the stream
//	f  file: name (uvarint n, n bytes), size (uvarint), CRC-64 (8 bytes):
//	   the stream has the content of the file here
//	m  the same, for a sparse file: the stream does not have its content,
//	   but its parts, which are in raw records
const RecipeFile = "recipe.gz"

const recipeMagic = "podrun recipe 1\n"

// The letters of records.
const (
	rawRecord     = 'r'
	payloadRecord = 'f'
	sparseRecord  = 'm'
)

// maxRawRecord bounds a raw record, and with it a reader's memory.
const maxRawRecord = 32 << 10

var crcTable = crc64.MakeTable(crc64.ECMA)

// recipeWriter writes the recipe of the tar stream that is read through it. Its entry method must see
// every header right after it was read, and the reader must not read ahead.
type recipeWriter struct {
	r   io.Reader
	out *bufio.Writer
	zip *gzip.Writer

	raw    []byte
	name   string // of the file whose content is being read
	size   int64
	left   int64
	sum    hash.Hash64
	sparse []sparseFile
	err    error
}

type sparseFile struct {
	name string
	size int64
}

func newRecipeWriter(r io.Reader, w io.Writer) *recipeWriter {
	zip, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is valid
	c := &recipeWriter{r: r, zip: zip, out: bufio.NewWriterSize(zip, 16<<10), sum: crc64.New(crcTable)}
	_, c.err = c.out.WriteString(recipeMagic)
	return c
}

func (c *recipeWriter) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, fmt.Errorf("write the layer's recipe: %w", c.err)
	}
	if c.left == 0 {
		n, err := c.r.Read(p[:min(len(p), maxRawRecord)])
		if len(c.raw)+n > maxRawRecord {
			c.flush()
		}
		c.raw = append(c.raw, p[:n]...)
		return n, err
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.left)])
	c.sum.Write(p[:n])
	if c.left -= int64(n); c.left == 0 {
		c.flush()
		c.file(payloadRecord, c.name, c.size, c.sum.Sum64())
		c.sum.Reset()
	}
	return n, err
}

// entry prepares the record of an entry's content. hdr is as it was read, but with a cleaned name.
func (c *recipeWriter) entry(hdr *tar.Header) {
	switch {
	case hdr.Typeflag != tar.TypeReg && hdr.Typeflag != tar.TypeCont && hdr.Typeflag != tar.TypeGNUSparse,
		strings.HasPrefix(path.Base(hdr.Name), whiteoutPrefix), hdr.Size == 0:
	case isSparse(hdr) && hdr.Size > maxSparse:
	case isSparse(hdr):
		c.sparse = append(c.sparse, sparseFile{hdr.Name, hdr.Size})
	default:
		c.name, c.size, c.left = hdr.Name, hdr.Size, hdr.Size
	}
}

func isSparse(hdr *tar.Header) bool {
	if hdr.Typeflag == tar.TypeGNUSparse {
		return true
	}
	for key := range hdr.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// maxSparse is the largest sparse file whose content is checked.
const maxSparse = 1 << 30

// close completes the recipe when everything is unpacked.
func (c *recipeWriter) close() error {
	c.flush()
	for _, s := range c.sparse {
		f, err := openUnpacked(s.name)
		if err != nil {
			continue // a later entry replaced it
		}
		c.sum.Reset()
		n, err := io.Copy(c.sum, f)
		f.Close()
		if err == nil && n == s.size {
			c.file(sparseRecord, s.name, s.size, c.sum.Sum64())
		}
	}
	for _, do := range []func() error{c.out.Flush, c.zip.Close} {
		if err := do(); c.err == nil {
			c.err = err
		}
	}
	if c.err != nil {
		return fmt.Errorf("write the layer's recipe: %w", c.err)
	}
	return nil
}

// openUnpacked opens a file of the layer, which is the root directory. It does not wait for a FIFO.
func openUnpacked(name string) (*os.File, error) {
	return os.OpenFile("/"+CleanName(name), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
}

func (c *recipeWriter) flush() {
	if len(c.raw) == 0 {
		return
	}
	c.write(append(binary.AppendUvarint([]byte{rawRecord}, uint64(len(c.raw))), c.raw...))
	c.raw = c.raw[:0]
}

func (c *recipeWriter) file(kind byte, name string, size int64, sum uint64) {
	b := append(binary.AppendUvarint([]byte{kind}, uint64(len(name))), name...)
	b = binary.AppendUvarint(b, uint64(size))
	c.write(binary.BigEndian.AppendUint64(b, sum))
}

func (c *recipeWriter) write(b []byte) {
	if _, err := c.out.Write(b); c.err == nil {
		c.err = err
	}
}

// recipeReader reads a recipe.
type recipeReader struct{ r *bufio.Reader }

// recipeEntry is one record: raw bytes, or a file.
type recipeEntry struct {
	kind byte
	raw  []byte
	name string
	size int64
	sum  uint64
}

func openRecipe(r io.Reader) (*recipeReader, error) {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return nil, recipeError(err)
	}
	c := &recipeReader{bufio.NewReaderSize(zip, 64<<10)}
	magic := make([]byte, len(recipeMagic))
	if _, err := io.ReadFull(c.r, magic); err != nil || string(magic) != recipeMagic {
		return nil, recipeError(errors.New("it was not written by this podrun"))
	}
	return c, nil
}

func recipeError(err error) error { return fmt.Errorf("read the layer's recipe: %w", err) }

// next returns the next record, or io.EOF at the end.
func (c *recipeReader) next() (e recipeEntry, err error) {
	if e.kind, err = c.r.ReadByte(); err != nil {
		if err != io.EOF {
			err = recipeError(err)
		}
		return e, err
	}
	switch e.kind {
	case rawRecord:
		e.raw, err = c.bytes(maxRawRecord)
	case payloadRecord, sparseRecord:
		var name []byte
		if name, err = c.bytes(1 << 20); err != nil { // PAX records bound a name to that
			break
		}
		e.name = string(name)
		var size uint64
		if size, err = binary.ReadUvarint(c.r); err != nil {
			break
		}
		e.size = int64(size)
		err = binary.Read(c.r, binary.BigEndian, &e.sum)
	default:
		err = fmt.Errorf("record %q is unknown", e.kind)
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return e, recipeError(err)
	}
	return e, nil
}

func (c *recipeReader) bytes(limit uint64) ([]byte, error) {
	n, err := binary.ReadUvarint(c.r)
	if err != nil {
		return nil, err
	}
	if n > limit {
		return nil, errors.New("a record is too long")
	}
	b := make([]byte, n)
	_, err = io.ReadFull(c.r, b)
	return b, err
}
