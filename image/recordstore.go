package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/containers/image/v5/docker/reference"
	"github.com/opencontainers/go-digest"

	"github.com/podrun/podrun/internal/store"
)

// What a store's directory holds: see the package's doc.
const (
	imagesDir  = "images"
	namesDir   = "names"
	layersDir  = "layers"
	stagingDir = "staging"
	retiredDir = "retired"
)

// recordStore is a directory of images: their records, the places of their layers, and locks.
type recordStore struct {
	dir  string
	boot string // which run of the machine it is
}

// openRecords opens the store in dir, which is made if missing and kept 0700: layers
// hold set-id files of the user's subordinate ids, which nobody else may run.
func openRecords(dir string) (*recordStore, error) {
	for _, d := range []string{"", imagesDir, namesDir, layersDir, stagingDir, retiredDir} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return nil, fmt.Errorf("open image store: %w", err)
		}
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open image store: %w", err)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open image store: %w", err)
	}
	return &recordStore{dir: abs, boot: store.BootID()}, nil
}

// lookup finds the record of a name. A reference by digest is also met by an image
// of that digest that was had from the same repository under another name.
func (s *recordStore) lookup(name reference.Named) (*nameRecord, error) {
	rec, err := s.readName(name.String())
	if !errors.Is(err, fs.ErrNotExist) {
		return rec, err
	}
	d, ok := name.(reference.Digested)
	if !ok {
		return nil, notFound(reference.FamiliarString(name))
	}
	all, err := s.names()
	for _, rec := range all {
		other, err := reference.ParseNamed(rec.Name)
		if err == nil && other.Name() == name.Name() && (rec.Digest == d.Digest() || rec.Top == d.Digest()) {
			return rec, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return nil, notFound(reference.FamiliarString(name))
}

// unique returns the digests, each once, sorted.
func unique(ids []digest.Digest) []digest.Digest {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// lock opens the store's lock, unlocked.
func (s *recordStore) lock() (*store.FileLock, error) {
	return store.OpenFileLock(filepath.Join(s.dir, "lock"))
}
