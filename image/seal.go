package image

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc64"
)

// sealBegin and sealEnd are around the sum with which a record begins. It is over all that
// follows, so a byte that a disk has changed is found wherever the record is read.
const sealBegin, sealEnd = `{"sum":"`, `",`

// sealed is a record as it is written. text is its JSON, of an object that is not empty.
func sealed(text []byte) []byte { return append(seal(text[1:]), text[1:]...) }

func seal(rest []byte) []byte {
	return fmt.Appendf(nil, "%s%016x%s", sealBegin, crc64.Checksum(rest, crc64.MakeTable(crc64.ECMA)), sealEnd)
}

// checkSeal says whether a record is as it was written. One without a sum is an earlier
// podrun's.
func checkSeal(text []byte) error {
	n := len(sealBegin) + 16 + len(sealEnd)
	if !bytes.HasPrefix(text, []byte(sealBegin)) || len(text) >= n && bytes.Equal(text[:n], seal(text[n:])) {
		return nil
	}
	return errors.New("its content has changed")
}
