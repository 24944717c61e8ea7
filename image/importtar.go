package image

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

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/pod"
)

// Import makes an image with one layer and no command from the tar file of a root
// file system, plain or compressed with gzip or zstd. The same file gives the same
// image id.
func (s *Store) Import(ctx context.Context, path, name string) (pod.Image, error) {
	ref, err := parseName(name)
	if err != nil {
		return pod.Image{}, err
	}
	a, err := s.begin(ctx, nil)
	if err != nil {
		return pod.Image{}, err
	}
	defer a.end()
	img, err := a.importTar(ctx, path, ref.String())
	if err != nil {
		if errors.Is(err, unix.EISDIR) {
			err = report.New(report.Usage, "tar c -C "+path+" . | podrun image import - "+name, "it is a directory, not a tar archive")
		}
		return pod.Image{}, fmt.Errorf("import %s: %w", shown(path), err)
	}
	return img, nil
}

func (a *adder) importTar(ctx context.Context, path, name string) (pod.Image, error) {
	if err := a.s.allowedFile(ctx, rootTar, path); err != nil {
		return pod.Image{}, err
	}
	b := layerBlob{Size: -1, Open: func(ctx context.Context) (io.ReadCloser, error) { return openInput(ctx, path) }}
	staged, rec, err := a.stage(ctx, b, func(int64) {})
	if err != nil {
		return pod.Image{}, err
	}
	if rec.Entries == 0 {
		return pod.Image{}, errors.Join(errors.New("there are no files in it"), a.s.removeTrees([]string{staged}))
	}
	if err := a.commitOnce(ctx, staged, rec); err != nil {
		return pod.Image{}, err
	}
	config, err := json.Marshal(v1.Image{
		Platform: v1.Platform{OS: "linux", Architecture: runtime.GOARCH},
		RootFS:   v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{rec.DiffID}},
		History:  []v1.History{{CreatedBy: "podrun image import"}},
	})
	if err != nil {
		return pod.Image{}, err
	}
	c := &candidate{config: config, layers: []layerBlob{{DiffID: rec.DiffID}}}
	return a.add(ctx, c, name, []string{name})
}

// commitOnce stores a staged layer unless it is there already.
func (a *adder) commitOnce(ctx context.Context, staged string, rec *layerRecord) error {
	unlock, err := a.lockLayer(ctx, rec.DiffID)
	if err != nil {
		return errors.Join(err, a.s.removeTrees([]string{staged}))
	}
	defer unlock()
	if _, err := a.s.readLayer(rec.DiffID); err == nil {
		return a.s.removeTrees([]string{staged})
	}
	return a.commit(staged, rec)
}
