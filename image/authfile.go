package image

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
)

// authFile is where credentials are looked for when the user names no file: "" for
// the library's own places. Without a login session the first of them is below
// /run/containers, which root's podman closes to everybody else; then the user's
// own file takes its place.
func authFile(uid int, home, runtimeDir string, stat func(path string) error) string {
	if uid == 0 || runtimeDir != "" {
		return ""
	}
	if err := stat(filepath.Join("/run/containers", strconv.Itoa(uid), "auth.json")); !errors.Is(err, fs.ErrPermission) {
		return ""
	}
	return filepath.Join(home, ".config", "containers", "auth.json")
}
