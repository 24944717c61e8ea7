package records

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/opencontainers/go-digest"

	"github.com/podrun/podrun/internal/report"
)

// Tag adds a name to an image, and removes it from the image that had it.
func (s *Store) Tag(ref, name string) error {
	to, err := ParseName(name)
	if err == nil && to.Digest != "" {
		err = report.New(report.Usage, "give it a tag: NAME:TAG", "a name with a digest identifies the image: it cannot be assigned")
	}
	if err == nil {
		err = s.tag(ref, to.String())
	}
	if err != nil {
		return fmt.Errorf("tag %s as %s: %w", ref, name, err)
	}
	return nil
}

func (s *Store) tag(ref, name string) error {
	lock, err := s.LockRecords()
	if err != nil {
		return err
	}
	defer lock.Close()
	names, damage := s.Names()
	id, old, err := s.resolveTarget(ref, names)
	if err != nil {
		return errors.Join(err, damage)
	}
	want, err := s.nameRecordOf(id, old)
	if err != nil {
		return err
	}
	want.Name = name
	have, err := s.ReadName(name)
	switch {
	case err == nil: // it still stands for the same, there or here
		want.Origin = have.Origin
	case old != "":
		want.Origin = OriginLocal
	}
	if err == nil && *have == *want {
		return nil
	}
	return WriteRecord(s.NameFile(name), want)
}

// nameRecordOf returns the record of an image's new name: a copy of an old name's, or one from the image's
// own record.
func (s *Store) nameRecordOf(id digest.Digest, old string) (*Name, error) {
	rec, err := s.ReadImage(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, unknownImage()
	}
	if err != nil {
		return nil, err
	}
	if old != "" {
		return s.ReadName(old)
	}
	r := &Name{Header: Header{RecordVersion}, ID: id, Digest: rec.Digest, Top: rec.Digest}
	if rec.Index != "" {
		r.Top, r.Index = digest.FromString(rec.Index), rec.Index
	}
	return r, nil
}
