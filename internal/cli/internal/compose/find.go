package compose

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/manifest/compose/api"
)

// Present reports whether the image program finds compose files without their names: $COMPOSE_FILE, also in .env, or a
// file in a directory or one above it.
func Present(env *cmdutil.Env, dir string) bool {
	dir, err := filepath.Abs(dir)
	if err != nil || env.Getenv("COMPOSE_FILE") != "" {
		return err == nil
	}
	if text, err := os.ReadFile(filepath.Join(dir, ".env")); err == nil && slices.ContainsFunc(strings.Split(string(text), "\n"), func(line string) bool {
		return strings.HasPrefix(strings.TrimSpace(line), "COMPOSE_FILE=")
	}) {
		return true
	}
	for ; ; dir = filepath.Dir(dir) {
		for _, name := range api.FileNames {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				return true
			}
		}
		if dir == "/" {
			return false
		}
	}
}

// ProjectName returns the name of a directory as docker compose makes the name of a project of it
// (compose-go: loader.NormalizeProjectName).
func ProjectName(dir string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return -1
	}, strings.ToLower(filepath.Base(dir)))
	return strings.TrimLeft(name, "_-")
}
