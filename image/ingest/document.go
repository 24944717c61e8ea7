package ingest

import (
	"bytes"
	"fmt"
	"io"
)

const (
	// MaxJSON is the maximum size of manifests, indexes and configs, as in registries.
	MaxJSON = 4 << 20
	// maxValues is the maximum number of values in such a document. A decoded value may take 300 bytes, so that a
	// document of empty objects would take a hundred times its size. An index of 10,000 images has 70,000.
	maxValues = 100_000
)

// LimitDocument returns a reader of a JSON document, which returns an error beyond the maximum size and number of
// values.
func LimitDocument(r io.Reader) io.Reader { return &limitedDocument{r: r} }

type limitedDocument struct {
	r                 io.Reader
	size, values      int
	inString, escaped bool
}

func (d *limitedDocument) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	d.size += n
	for _, b := range p[:n] {
		d.count(b)
	}
	switch {
	case d.size > MaxJSON:
		return 0, fmt.Errorf("it is larger than %d bytes", MaxJSON)
	case d.values > maxValues:
		return 0, fmt.Errorf("it has more than %d values", maxValues)
	}
	return n, err
}

// count counts what begins a value, or separates it from the next.
func (d *limitedDocument) count(b byte) {
	switch {
	case d.escaped:
		d.escaped = false
	case b == '"':
		d.inString = !d.inString
	case d.inString:
		d.escaped = b == '\\'
	case b == ',' || b == '{' || b == '[':
		d.values++
	}
}

// checkDocument returns an error if a document is larger than LimitDocument allows.
func checkDocument(raw []byte) error {
	_, err := io.Copy(io.Discard, LimitDocument(bytes.NewReader(raw)))
	return err
}
