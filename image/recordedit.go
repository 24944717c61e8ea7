package image

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

// lockRecords locks the records of images and names against other writers, until the result is closed.
func (s *recordStore) lockRecords() (*store.FileLock, error) {
	lock, err := store.OpenFileLock(filepath.Join(s.dir, "records.lock"))
	if err != nil {
		return nil, err
	}
	if err := lock.Exclusive(); err != nil {
		lock.Close()
		return nil, err
	}
	return lock, nil
}

// knownConfig is the config of an image that is recorded, or nil.
func (s *recordStore) knownConfig(id digest.Digest) []byte {
	rec, err := s.readImage(id)
	if err != nil || digest.FromString(rec.Config) != id {
		return nil
	}
	return []byte(rec.Config)
}

// removeRecords removes a name, and with its last name the image: see Store.Remove.
func (s *recordStore) removeRecords(nameOrID string) error {
	lock, err := s.lockRecords()
	if err != nil {
		return err
	}
	defer lock.Close()
	names, damage := s.names()
	id, name, err := s.target(nameOrID, names)
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
		files = append(files, s.nameFile(name))
	}
	if len(others) == 0 {
		files = append(files, s.imageFile(id))
	}
	return s.unrecord(files...)
}

// unrecord removes files of names and images, which the caller has locked, in this order. They
// have durably gone before layers go: what is listed after a power cut is whole.
func (s *recordStore) unrecord(files ...string) error {
	for _, file := range files {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return errors.Join(store.SyncDir(filepath.Join(s.dir, namesDir)), store.SyncDir(filepath.Join(s.dir, imagesDir)))
}

// find is target for who has not read the names.
func (s *recordStore) find(nameOrID string) (id digest.Digest, name string, err error) {
	names, damage := s.names()
	id, name, err = s.target(nameOrID, names)
	if err != nil {
		err = errors.Join(err, damage)
	}
	return id, name, err
}

// target finds what the user means: the image's id, and its name if it was named.
func (s *recordStore) target(nameOrID string, names []*nameRecord) (id digest.Digest, name string, err error) {
	ref, refErr := parseName(nameOrID)
	if refErr == nil {
		i := slices.IndexFunc(names, func(n *nameRecord) bool { return n.Name == ref.String() })
		if i >= 0 {
			id, name = names[i].ID, names[i].Name
		}
	}
	hex, ok := idBeginning(nameOrID)
	if !ok {
		switch {
		case refErr != nil:
			return "", "", refErr
		case name == "":
			return "", "", unknown()
		}
		return id, name, nil
	}
	entries, err := os.ReadDir(filepath.Join(s.dir, imagesDir))
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
		return "", "", unknown()
	case 1:
		return id, name, nil
	}
	return "", "", report.New(report.Usage, "podrun image ls shows names and ids in full", "%q is ambiguous: %d images match", nameOrID, found)
}

// readable is what can be had of a name's damaged record: nil if not even the name, to which
// the file's own name vouches.
func (s *recordStore) readable(file string) *nameRecord {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	rec := new(nameRecord)
	if json.Unmarshal(text, rec) != nil || s.nameFile(rec.Name) != file {
		return nil
	}
	return rec
}

// rename writes a name's record of what its image knows, if that is here.
func (s *recordStore) rename(rec *nameRecord) (done bool, err error) {
	lock, err := s.lockRecords()
	if err != nil {
		return false, err
	}
	defer lock.Close()
	want, err := s.nameRecordOf(rec.ID, "")
	if err != nil {
		return false, nil // it is damaged too, or there is none: the registry has it
	}
	want.Name = rec.Name
	if rec.Origin == fromRegistry || rec.Origin == fromMachine {
		want.Origin = rec.Origin
	}
	if err := writeRecord(s.nameFile(rec.Name), want); err != nil {
		return false, fmt.Errorf("repair name %s: %w", rec.Name, err)
	}
	return true, nil
}
