//go:build embedback

package embed

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/podrun/podrun/internal/store"
)

//go:embed back.gz
var packed []byte

//go:embed back.sum
var backSum string // SHA-256 of the program, so that no start has to compute it

// Stages: the supervisor's are in its own program.
func Stages() map[string]func([]string) int { return nil }

// Program unpacks the supervisor's program once per version and returns its path.
// It lives on disk, not in a memfd, so that all pods of a user share its pages and
// an idle pod's can be reclaimed.
func Program(dirs store.Dirs) (string, error) {
	path := filepath.Join(dirs.Libexec(), "podrun-back-"+strings.TrimSpace(backSum)[:16])
	size := binary.LittleEndian.Uint32(packed[len(packed)-4:]) // RFC 1952: ISIZE
	if st, err := os.Stat(path); err == nil && st.Size() == int64(size) {
		return path, nil
	}
	back, err := unpack()
	if err != nil {
		return "", fmt.Errorf("unpack the supervisor: %w", err)
	}
	if err := os.MkdirAll(dirs.Libexec(), 0o700); err != nil {
		return "", fmt.Errorf("unpack the supervisor: %w", err)
	}
	if err := store.WriteExecutable(path, back); err != nil {
		return "", fmt.Errorf("unpack the supervisor: %w", err)
	}
	return path, nil
}

func unpack() ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
