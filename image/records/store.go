package records

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/go-digest"

	"github.com/podrun/podrun/image/reference"
	"github.com/podrun/podrun/internal/store"
)

// The content of a store's directory: see package image.
const (
	ImagesDir  = "images"
	NamesDir   = "names"
	LayersDir  = "layers"
	StagingDir = "staging"
	retiredDir = "retired"
)

// Store is a directory of images: their records, the directories of their layers, and locks.
type Store struct {
	Dir  string
	Boot string // identifies the current boot of the machine
}

// Open opens the store in dir, which is made if missing and kept 0700: layers hold set-id files of the
// user's subordinate ids, which no other user may run.
func Open(dir string) (*Store, error) {
	for _, d := range []string{"", ImagesDir, NamesDir, LayersDir, StagingDir, retiredDir} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return nil, fmt.Errorf("open image store: %w", err)
		}
	}
	// A read-only file system refuses even a chmod that changes nothing.
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return nil, fmt.Errorf("open image store: %w", err)
		}
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open image store: %w", err)
	}
	return &Store{Dir: abs, Boot: store.BootID()}, nil
}

// LookupName finds the record of a name. A reference by digest also matches an image with that digest that
// was pulled from the same repository under another name.
func (s *Store) LookupName(name reference.Name) (*Name, error) {
	rec, err := s.ReadName(name.String())
	if !errors.Is(err, fs.ErrNotExist) {
		return rec, err
	}
	if name.Digest == "" {
		return nil, NotFound(name.Familiar())
	}
	all, err := s.Names()
	for _, rec := range all {
		other, err := reference.ParseFull(rec.Name)
		if err == nil && other.Repository() == name.Repository() && (rec.Digest == name.Digest || rec.Top == name.Digest) {
			return rec, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return nil, NotFound(name.Familiar())
}

// UniqueDigests returns the digests, each once, sorted.
func UniqueDigests(ids []digest.Digest) []digest.Digest {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Lock opens the store's lock file, unlocked.
func (s *Store) Lock() (*store.FileLock, error) {
	return store.OpenFileLock(s.lockFile())
}

func (s *Store) lockFile() string { return filepath.Join(s.Dir, "lock") }
