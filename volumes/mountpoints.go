package volumes

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// MountPointsLayer returns a layer with mount points (absolute paths): directories and empty files. As the
// lowest layer of a root file system it replaces those that Place and libcontainer would make in the writable
// layer, one after the other and for every container, where the image lacks them.
//
// Each set of mount points has one layer in dir, which is made if it is missing and stays. Concurrent callers
// fill the same directory; the first that finds it complete renames it. A power cut may leave an incomplete layer:
// the missing mount points are then made in the writable layer.
func MountPointsLayer(dir string, dirs, files []string) (string, error) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n\n%s", strings.Join(dirs, "\n"), strings.Join(files, "\n")))
	layer := filepath.Join(dir, hex.EncodeToString(sum[:8]))
	if exists(layer) {
		return layer, nil
	}
	making := layer + ".new"
	err := makeMountPoints(making, dirs, files)
	if err == nil {
		err = os.Rename(making, layer)
	}
	switch {
	case err == nil:
	case !exists(layer):
		return "", fmt.Errorf("make mount points: %w", err)
	default: // another caller has renamed the directory, and this one may have begun it again
		_ = RemoveTree(making)
	}
	return layer, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func makeMountPoints(layer string, dirs, files []string) error {
	if err := makePublic(layer); err != nil {
		return err
	}
	top, err := openPath(layer)
	if err != nil {
		return err
	}
	defer top.Close()
	var errs []error
	for i, name := range append(append([]string{}, dirs...), files...) {
		f, err := openOrMake(top, name, i < len(dirs), 0o755, 0)
		if err == nil {
			err = f.Close()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
