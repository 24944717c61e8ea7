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

// repairName puts a name's damaged record back: of the image that it leads to, which no changed id
// would, or else from its registry. One of which nothing is known is removed.
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
		return report.New(report.Failure, "podrun image load FILE or podrun image tag puts it back without a registry", "repair name %s: %w", rec.Name, err)
	}
	return nil
}

// Repair puts a damaged image back from its registry: the damaged layers alone are
// fetched, and replaced. Pods that run keep the files they have until they are started
// anew. A name's record is put back if it can be told what it was, or else removed.
func Repair(ctx context.Context, s *records.Store, v api.Verified, pull func(ctx context.Context, ref string, unnamed bool) (id string, err error)) error {
	if v.ID == "" {
		return repairName(ctx, s, v.RecordFile, pull)
	}
	if v.RecordFile != "" { // or the pull would think that it is there
		if err := os.Remove(v.RecordFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, d := range v.Damage { // one whose recipe cannot be read has no mark yet
		id, ok := records.ParseID(d.Layer)
		if !ok || !isDir(s.LayerDir(id)) {
			continue
		}
		if err := s.MarkDamaged(id, d.What); err != nil {
			return err
		}
	}
	errs := []error{report.New(report.Failure, "podrun image load FILE puts it back", "repair image %s: it has no name to pull it by", v.ID)}
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
	return report.New(report.Failure, "podrun image load FILE puts it back without a registry", "repair image %s: %w", v.Name(), errors.Join(errs...))
}

// confirmRepair looks whether an image is whole now.
func confirmRepair(ctx context.Context, s *records.Store, v api.Verified) error {
	again, err := Verify(ctx, s, []string{v.ID}, nil)
	if err != nil {
		return err
	}
	for _, a := range again {
		if len(a.Damage) > 0 {
			return report.New(report.Failure, "the disk may be failing: look at the kernel's log; or the layer's archive has files that replace one another, which cannot be verified",
				"repair image %s: it was fetched again, and is not whole still: %s", v.Name(), a.Damage[0])
		}
	}
	return nil
}

func isDir(path string) bool {
	st, err := os.Lstat(path)
	return err == nil && st.IsDir()
}
