package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/ingest"
	"github.com/podrun/podrun/image/layer"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/internal/report"
)

// Import makes an image with one layer and no command from the tar file of a root file system, plain or
// compressed with gzip or zstd. The same file gives the same image id.
func (s *Archiver) Import(ctx context.Context, path, name string) (api.Added, error) {
	ref, err := records.ParseName(name)
	if err != nil {
		return api.Added{}, err
	}
	a, err := s.Begin(ctx, nil)
	if err != nil {
		return api.Added{}, err
	}
	defer a.End()
	img, err := (&loader{a, s.Checker}).importTar(ctx, path, ref.String())
	if err != nil {
		if errors.Is(err, unix.EISDIR) {
			err = report.New(report.Usage, "tar c -C "+path+" . | podrun image import - "+name, "it is a directory, not a tar archive")
		}
		return api.Added{}, fmt.Errorf("import %s: %w", api.DisplayPath(path), err)
	}
	return img, nil
}

func (a *loader) importTar(ctx context.Context, path, name string) (api.Added, error) {
	if err := a.CheckFile(ctx, api.RootTar, path); err != nil {
		return api.Added{}, err
	}
	b := layer.Blob{Size: -1, Open: func(ctx context.Context) (io.ReadCloser, error) { return openInput(ctx, path, writerTime) }}
	staged, rec, err := a.Unpack(ctx, b, func(int64) {})
	if err != nil {
		return api.Added{}, err
	}
	if rec.Entries == 0 {
		return api.Added{}, errors.Join(errors.New("there are no files in it"), layer.RemoveTrees([]string{staged}))
	}
	if err := a.CommitOnce(ctx, staged, rec); err != nil {
		return api.Added{}, err
	}
	config, err := json.Marshal(v1.Image{
		Platform: v1.Platform{OS: "linux", Architecture: runtime.GOARCH},
		RootFS:   v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{rec.DiffID}},
		History:  []v1.History{{CreatedBy: "podrun image import"}},
	})
	if err != nil {
		return api.Added{}, err
	}
	c := &ingest.Candidate{Config: config, Layers: []layer.Blob{{DiffID: rec.DiffID}}}
	return a.Add(ctx, c, name, []string{name})
}
