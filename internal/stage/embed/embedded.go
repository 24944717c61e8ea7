//go:build embedback

package embed

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/podrun/podrun/internal/store"
)

//go:embed back.bin
var back []byte

//go:embed back.sum
var backSum string // its SHA-256, so that no start has to compute it

// Stages: the supervisor's are in its own program.
func Stages() map[string]func([]string) int { return nil }

// Program unpacks the supervisor's program once per version and returns its path.
// It lives on disk, not in a memfd, so that all pods of a user share its pages and
// an idle pod's can be reclaimed.
func Program(dirs store.Dirs) (string, error) {
	path := filepath.Join(dirs.Libexec(), "podrun-back-"+strings.TrimSpace(backSum)[:16])
	if st, err := os.Stat(path); err == nil && st.Size() == int64(len(back)) {
		return path, nil
	}
	if err := os.MkdirAll(dirs.Libexec(), 0o700); err != nil {
		return "", fmt.Errorf("unpack the supervisor: %w", err)
	}
	if err := store.WriteExecutable(path, back); err != nil {
		return "", fmt.Errorf("unpack the supervisor: %w", err)
	}
	return path, nil
}
