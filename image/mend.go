package image

import (
	"context"
	"os"

	"github.com/podrun/podrun/internal/report"
)

// mend puts a name's damaged record back: of the image that it leads to, which no changed id
// would, or else from its registry. One of which nothing is known is removed.
func mend(ctx context.Context, s *recordStore, file string, pull func(ctx context.Context, ref string, unnamed bool) (id string, err error)) error {
	rec := s.readable(file)
	if rec == nil {
		return os.Remove(file)
	}
	if checkDigest(rec.ID) == nil {
		if done, err := s.rename(rec); done || err != nil {
			return err
		}
	}
	if _, err := pull(ctx, rec.Name, false); err != nil {
		return report.New(report.Failure, "podrun image load FILE or podrun image tag puts it back without a registry", "repair name %s: %w", rec.Name, err)
	}
	return nil
}
