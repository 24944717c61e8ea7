package image

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/podrun/podrun/internal/report"
)

// streamLayer gives a layer's tar stream to write. It is an error if the stream is not what the
// layer's digest says.
func streamLayer(ctx context.Context, s *recordStore, rec *layerRecord, write func(io.Reader) error, told func(int64)) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	stop := context.AfterFunc(ctx, func() { r.Close() })
	defer stop()
	type answer struct {
		made *rebuilt
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		made, err := rebuildLayer(rec.DiffID, s.layerDir(rec.DiffID), false, w)
		w.Close()
		done <- answer{made, err}
	}()
	blob := newBlobReader(r, "", rec.Size)
	blob.told = everyMiB(told)
	err = write(blob)
	r.Close() // or the child would wait for a reader
	a := <-done
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case a.err == nil && len(a.made.Bad) > 0:
		return report.New(report.Failure, "podrun image verify --repair puts it back", "it is damaged: %s", summary(a.made.Bad))
	case a.err == nil && a.made.DiffID != rec.DiffID && a.made.Replaced:
		return errors.New("its archive has files that replace one another, which cannot be had again: save the image where it was built")
	case err != nil:
		return err
	case a.err != nil:
		return a.err
	case a.made.DiffID != rec.DiffID:
		return report.New(report.Failure, "podrun image verify --repair puts it back", "it is damaged: its files make %s", a.made.DiffID)
	}
	return nil
}
