package records

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc64"
)

// checksumBegin and checksumEnd are around the sum with which a record begins. It is over all that
// follows, so a byte that a disk has changed is found wherever the record is read.
const checksumBegin, checksumEnd = `{"sum":"`, `",`

// WithChecksum is a record as it is written. text is its JSON, of an object that is not empty.
func WithChecksum(text []byte) []byte { return append(checksumPrefix(text[1:]), text[1:]...) }

func checksumPrefix(rest []byte) []byte {
	return fmt.Appendf(nil, "%s%016x%s", checksumBegin, crc64.Checksum(rest, crc64.MakeTable(crc64.ECMA)), checksumEnd)
}

// verifyChecksum says whether a record is as it was written. One without a sum is an earlier
// podrun's.
func verifyChecksum(text []byte) error {
	n := len(checksumBegin) + 16 + len(checksumEnd)
	if !bytes.HasPrefix(text, []byte(checksumBegin)) || len(text) >= n && bytes.Equal(text[:n], checksumPrefix(text[n:])) {
		return nil
	}
	return errors.New("its content has changed")
}
