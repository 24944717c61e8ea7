package layer

import (
	"archive/tar"
	"errors"
	"io"
	"path"
	"strings"
)

// CleanName returns the one normal spelling of a name.
func CleanName(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

// DescribeTarError describes the error of a tar file in plain words. entries is the number of entries that
// were read.
func DescribeTarError(err error, entries int) error {
	switch short := errors.Is(err, io.ErrUnexpectedEOF); {
	case entries == 0 && (short || errors.Is(err, tar.ErrHeader)):
		return errors.New("it is not a tar archive")
	case short:
		return errors.New("it is cut off: it ends in the middle of a file")
	}
	return err
}
