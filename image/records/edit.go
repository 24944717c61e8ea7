package records

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// LockRecords locks the records of images and names against other writers, until the result is closed.
func (s *Store) LockRecords() (*store.FileLock, error) {
	return store.LockExclusive(filepath.Join(s.Dir, "records.lock"))
}

// ConfigOf returns the config of a recorded image, or nil.
func (s *Store) ConfigOf(id digest.Digest) []byte {
	rec, err := s.ReadImage(id)
	if err != nil || digest.FromString(rec.Config) != id {
		return nil
	}
	return []byte(rec.Config)
}

// RemoveRecords removes a name, and with its last name the image: see image.Store.Remove.
func (s *Store) RemoveRecords(nameOrID string) error {
	lock, err := s.LockRecords()
	if err != nil {
		return err
	}
	defer lock.Close()
	names, damage := s.Names()
	id, name, err := s.resolveTarget(nameOrID, names)
	if err != nil {
		return errors.Join(err, damage)
	}
	var others []string
	for _, n := range names {
		if n.ID == id && n.Name != name {
			others = append(others, n.Name)
		}
	}
	slices.Sort(others)
	switch {
	case name == "" && len(others) > 1:
		return report.New(report.Usage, "remove its names one by one", "it has several names: %s", strings.Join(others, ", "))
	case name == "" && len(others) == 1:
		name, others = others[0], nil
	}
	var files []string
	if name != "" {
		files = append(files, s.NameFile(name))
	}
	if len(others) == 0 {
		files = append(files, s.ImageFile(id))
	}
	return s.RemoveFiles(files...)
}

// RemoveFiles removes files of names and images in this order. The caller holds the lock. They are durably
// removed before any layer: so every image that is listed after a power cut is complete.
func (s *Store) RemoveFiles(files ...string) error {
	for _, file := range files {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return errors.Join(store.SyncDir(filepath.Join(s.Dir, NamesDir)), store.SyncDir(filepath.Join(s.Dir, ImagesDir)))
}

// Find is resolveTarget for a caller that has not read the names.
func (s *Store) Find(nameOrID string) (id digest.Digest, name string, err error) {
	names, damage := s.Names()
	id, name, err = s.resolveTarget(nameOrID, names)
	if err != nil {
		err = errors.Join(err, damage)
	}
	return id, name, err
}

// resolveTarget returns the id of the image that the user named, and its name if it was named by one.
func (s *Store) resolveTarget(nameOrID string, names []*Name) (id digest.Digest, name string, err error) {
	ref, refErr := ParseName(nameOrID)
	if refErr == nil {
		i := slices.IndexFunc(names, func(n *Name) bool { return n.Name == ref.String() })
		if i >= 0 {
			id, name = names[i].ID, names[i].Name
		}
	}
	hex, ok := idPrefix(nameOrID)
	if !ok {
		switch {
		case refErr != nil:
			return "", "", refErr
		case name == "":
			return "", "", unknownImage()
		}
		return id, name, nil
	}
	entries, err := os.ReadDir(filepath.Join(s.Dir, ImagesDir))
	if err != nil {
		return "", "", err
	}
	found := 0
	if name != "" {
		found++
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), hex) && len(e.Name()) == 64+len(".json") {
			id = digest.NewDigestFromEncoded(digest.SHA256, e.Name()[:64])
			found++
		}
	}
	switch found {
	case 0:
		return "", "", unknownImage()
	case 1:
		return id, name, nil
	}
	return "", "", report.New(report.Usage, "podrun image ls shows names and ids in full", "%q is ambiguous: %d images match", nameOrID, found)
}

// ReadDamagedName returns the usable part of a name's damaged record: nil if not even the name can be read,
// which the file's own name confirms.
func (s *Store) ReadDamagedName(file string) *Name {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	rec := new(Name)
	if json.Unmarshal(text, rec) != nil || s.NameFile(rec.Name) != file {
		return nil
	}
	return rec
}

// RestoreName writes a name's record from its image's record, if that is there.
func (s *Store) RestoreName(rec *Name) (done bool, err error) {
	lock, err := s.LockRecords()
	if err != nil {
		return false, err
	}
	defer lock.Close()
	want, err := s.nameRecordOf(rec.ID, "")
	if err != nil {
		return false, nil // it is damaged too, or missing: the registry has it
	}
	want.Name = rec.Name
	if rec.Origin == OriginRegistry || rec.Origin == OriginLocal {
		want.Origin = rec.Origin
	}
	if err := WriteRecord(s.NameFile(rec.Name), want); err != nil {
		return false, fmt.Errorf("repair name %s: %w", rec.Name, err)
	}
	return true, nil
}
