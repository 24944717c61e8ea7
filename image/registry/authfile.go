package registry

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
)

// defaultAuthFile returns the auth file if the user names none: "" for the library's own locations. Without a
// login session the first of them is below /run/containers, which root's podman makes inaccessible for other
// users; then the user's own file is used instead.
func defaultAuthFile(uid int, home, runtimeDir string, stat func(path string) error) string {
	if uid == 0 || runtimeDir != "" {
		return ""
	}
	if err := stat(filepath.Join("/run/containers", strconv.Itoa(uid), "auth.json")); !errors.Is(err, fs.ErrPermission) {
		return ""
	}
	return filepath.Join(home, ".config", "containers", "auth.json")
}
