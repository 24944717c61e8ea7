package integrity

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/podrun/podrun/image/layer"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/internal/report"
)

// StreamLayer passes a layer's tar stream to write. It returns an error if the stream does not match the
// layer's digest.
func StreamLayer(ctx context.Context, s *records.Store, rec *records.Layer, write func(io.Reader) error, onProgress func(int64)) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	stop := context.AfterFunc(ctx, func() { r.Close() })
	defer stop()
	type answer struct {
		made *layer.RebuildResult
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		made, err := layer.Rebuild(rec.DiffID, s.LayerDir(rec.DiffID), false, w)
		w.Close()
		done <- answer{made, err}
	}()
	blob := layer.NewBlobReader(r, "", rec.Size)
	blob.Progress = layer.EveryMiB(onProgress)
	err = write(blob)
	r.Close() // otherwise the child would wait for a reader
	a := <-done
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case a.err == nil && len(a.made.Changed) > 0:
		return report.New(report.Failure, "podrun image verify --repair restores it", "it is damaged: %s", summarize(a.made.Changed))
	case a.err == nil && a.made.DiffID != rec.DiffID && a.made.Replaced:
		return errors.New("its archive contains overwritten files, which are not stored: save the image from its original host")
	case err != nil:
		return err
	case a.err != nil:
		return a.err
	case a.made.DiffID != rec.DiffID:
		return report.New(report.Failure, "podrun image verify --repair restores it", "it is damaged: its files make %s", a.made.DiffID)
	}
	return nil
}
