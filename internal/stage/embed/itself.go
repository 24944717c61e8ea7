//go:build !embedback

package embed

import (
	"fmt"
	"os"

	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/runner"
)

// Stages are the supervisor's: this program is its own supervisor.
func Stages() map[string]func([]string) int { return runner.Stages() }

// Program is the path of this program.
func Program(store.Dirs) (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find podrun's own program: %w", err)
	}
	return path, nil
}
