package image

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/podrun/podrun/internal/report"
)

// readable is what can be had of a name's damaged record: nil if not even the name, to which
// the file's own name vouches.
func (s *Store) readable(file string) *nameRecord {
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

// mend puts a name's damaged record back: of the image that it leads to, which no changed id
// would, or else from its registry. One of which nothing is known is removed.
func (s *Store) mend(ctx context.Context, file string, o PullOptions) error {
	rec := s.readable(file)
	if rec == nil {
		return os.Remove(file)
	}
	if checkDigest(rec.ID) == nil {
		if done, err := s.rename(rec); done || err != nil {
			return err
		}
	}
	if _, err := s.Pull(ctx, rec.Name, o); err != nil {
		return report.New(report.Failure, "podrun image load FILE or podrun image tag puts it back without a registry", "repair name %s: %w", rec.Name, err)
	}
	return nil
}

// rename writes a name's record of what its image knows, if that is here.
func (s *Store) rename(rec *nameRecord) (done bool, err error) {
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
