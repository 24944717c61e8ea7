package records

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc64"
)

// checksumBegin and checksumEnd enclose the checksum at the beginning of a record. It covers everything
// after it, so every reader detects a changed byte.
const checksumBegin, checksumEnd = `{"sum":"`, `",`

// WithChecksum returns a record with its checksum. text is the JSON of an object that is not empty.
func WithChecksum(text []byte) []byte { return append(checksumPrefix(text[1:]), text[1:]...) }

func checksumPrefix(rest []byte) []byte {
	return fmt.Appendf(nil, "%s%016x%s", checksumBegin, crc64.Checksum(rest, crc64.MakeTable(crc64.ECMA)), checksumEnd)
}

// verifyChecksum returns an error if a record has changed since it was written. Records of older podruns
// have no checksum.
func verifyChecksum(text []byte) error {
	n := len(checksumBegin) + 16 + len(checksumEnd)
	if !bytes.HasPrefix(text, []byte(checksumBegin)) || len(text) >= n && bytes.Equal(text[:n], checksumPrefix(text[n:])) {
		return nil
	}
	return errors.New("its content has changed")
}
