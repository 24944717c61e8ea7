package records

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/podrun/podrun/internal/store"
)

// Lease keeps every layer in the store until the result is closed: between finding an image and recording a
// pod that uses it, no Remove may free its layers.
func (s *Store) Lease() (io.Closer, error) {
	lock, err := store.LockShared(s.lockFile())
	if err != nil {
		return nil, err // a nil *FileLock would be a Closer
	}
	return lock, nil
}

// StaleStaging lists the directories that an interrupted command has left in staging/, and the replaced
// layers from before the last boot, for the caller to remove. It removes the lock files of layers itself. The
// caller holds the store's lock exclusively.
func (s *Store) StaleStaging() ([]string, error) {
	staging := filepath.Join(s.Dir, StagingDir)
	entries, err := os.ReadDir(staging)
	if err != nil {
		return nil, fmt.Errorf("clean image store: %w", err)
	}
	var dirs []string
	for _, e := range entries {
		path := filepath.Join(staging, e.Name())
		if e.IsDir() {
			dirs = append(dirs, path)
		} else if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("clean image store: %w", err)
		}
	}
	retired, err := s.UnusedRetired(func(string) bool { return true })
	return append(dirs, retired...), err
}

// MoveToStaging moves a layer to staging/, where it is removed later. The rename needs no disk space: space
// must be freeable on a full disk.
func (s *Store) MoveToStaging(layer string) (string, error) {
	gone := filepath.Join(s.Dir, StagingDir, "old-"+rand.Text())
	return gone, os.Rename(layer, gone)
}

// NewRetiredDir makes a directory for a damaged layer that is replaced, because pods may run from it. It
// returns the path to which the layer has to be renamed.
func (s *Store) NewRetiredDir(hex string) (string, error) {
	dir, err := os.MkdirTemp(filepath.Join(s.Dir, retiredDir), hex+"."+s.Boot+".")
	return filepath.Join(dir, "layer"), err
}

// UnusedRetired lists replaced layers that are no longer in use: the machine was restarted since, or inUse
// is nil or returns false for the layer's directory. The caller holds the store's lock exclusively.
func (s *Store) UnusedRetired(inUse func(string) bool) ([]string, error) {
	dir := filepath.Join(s.Dir, retiredDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("clean image store: %w", err)
	}
	var free []string
	for _, e := range entries {
		hex, rest, _ := strings.Cut(e.Name(), ".")
		boot, _, _ := strings.Cut(rest, ".")
		if boot != s.Boot || inUse == nil || !inUse(filepath.Join(s.Dir, LayersDir, hex, LayerFS)) {
			free = append(free, filepath.Join(dir, e.Name()))
		}
	}
	return free, nil
}

// damagedFile returns the path of the file that marks a layer as damaged and describes the damage. Pods that
// run from the layer continue, no other starts, and the next pull or load replaces the layer.
func (s *Store) damagedFile(diffID digest.Digest) string {
	return filepath.Join(s.LayerDir(diffID), "damaged")
}

// MarkDamaged prevents the use of a damaged layer.
func (s *Store) MarkDamaged(id digest.Digest, reason string) error {
	return store.WriteFile(s.damagedFile(id), []byte(reason))
}

// ClearDamaged allows the use of a layer that was found to be undamaged.
func (s *Store) ClearDamaged(id digest.Digest) error {
	if err := os.Remove(s.damagedFile(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
