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

// Pin gives the image of a name a second name, by its digest, which stands for that image for ever. It returns the name with
// its tag and the digest. The image has to be the one with the id.
func (s *Store) Pin(name string, id digest.Digest) (string, error) {
	ref, err := ParseName(name)
	if err != nil || ref.Digest != "" {
		return name, err
	}
	lock, err := s.LockRecords()
	if err != nil {
		return "", err
	}
	defer lock.Close()
	rec, err := s.ReadName(ref.String())
	if err != nil {
		return "", err
	}
	if rec.ID != id {
		return "", fmt.Errorf("pin %s: it is another image now", name)
	}
	pinned := *rec
	by := rec.Name + "@" + rec.Digest.String()
	ref.Tag, ref.Digest = "", rec.Digest
	pinned.Name, pinned.Top, pinned.Index = ref.String(), rec.Digest, ""
	if have, err := s.ReadName(pinned.Name); err == nil && *have == pinned {
		return by, nil
	}
	return by, WriteRecord(s.NameFile(pinned.Name), &pinned)
}
