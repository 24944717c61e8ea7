package integrity

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/internal/report"
)

// repairName restores a name's damaged record: from the image that it points to, as a changed id would point
// to none, or else from its registry. If nothing about it is recoverable, it is removed.
func repairName(ctx context.Context, s *records.Store, file string, pull func(ctx context.Context, ref string, unnamed bool) (id string, err error)) error {
	rec := s.ReadDamagedName(file)
	if rec == nil {
		return os.Remove(file)
	}
	if records.CheckDigest(rec.ID) == nil {
		if done, err := s.RestoreName(rec); done || err != nil {
			return err
		}
	}
	if _, err := pull(ctx, rec.Name, false); err != nil {
		return report.New(report.Failure, "podrun image load FILE or podrun image tag restores it without a registry", "repair name %s: %w", rec.Name, err)
	}
	return nil
}

// Repair restores a damaged image from its registry. Only the damaged layers are fetched and replaced.
// Running pods keep their files until they are restarted. A name's record is restored if its content can be
// determined, or else removed. pull pulls ref; with unnamed it records no name.
func Repair(ctx context.Context, s *records.Store, v api.Verified, pull func(ctx context.Context, ref string, unnamed bool) (id string, err error)) error {
	if v.ID == "" {
		return repairName(ctx, s, v.RecordFile, pull)
	}
	if v.RecordFile != "" { // otherwise the pull would find it in the store
		if err := os.Remove(v.RecordFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, d := range v.Damage { // a layer with an unreadable recipe has no mark yet
		id, ok := records.ParseID(d.Layer)
		if !ok || !isDir(s.LayerDir(id)) {
			continue
		}
		if err := s.MarkDamaged(id, d.What); err != nil {
			return err
		}
	}
	errs := []error{report.New(report.Failure, "podrun image load FILE restores it", "repair image %s: it has no name to pull it by", v.ID)}
	for i, top := range v.References {
		if i == 0 {
			errs = nil
		}
		id, err := pull(ctx, top, true)
		if err == nil && id == v.ID {
			return confirmRepair(ctx, s, v)
		}
		errs = append(errs, err)
	}
	return report.New(report.Failure, "podrun image load FILE restores it without a registry", "repair image %s: %w", v.Name(), errors.Join(errs...))
}

// confirmRepair verifies that an image is undamaged now.
func confirmRepair(ctx context.Context, s *records.Store, v api.Verified) error {
	again, err := Verify(ctx, s, []string{v.ID}, nil)
	if err != nil {
		return err
	}
	for _, a := range again {
		if len(a.Damage) > 0 {
			return report.New(report.Failure, "the disk may be failing: check the kernel's log; or the layer's archive contains overwritten files, which cannot be verified",
				"repair image %s: it was pulled again, and is still damaged: %s", v.Name(), a.Damage[0])
		}
	}
	return nil
}

func isDir(path string) bool {
	st, err := os.Lstat(path)
	return err == nil && st.IsDir()
}
