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
)

// importFile makes an image with one layer and no command from the tar file of a root
// file system, plain or compressed with gzip or zstd. The same file gives the same
// image id.
func (s *archives) importFile(ctx context.Context, path, name string) (added, error) {
	ref, err := parseName(name)
	if err != nil {
		return added{}, err
	}
	a, err := s.begin(ctx, nil)
	if err != nil {
		return added{}, err
	}
	defer a.end()
	img, err := (&loader{a, s.policyChecker}).importTar(ctx, path, ref.String())
	if err != nil {
		if errors.Is(err, unix.EISDIR) {
			err = report.New(report.Usage, "tar c -C "+path+" . | podrun image import - "+name, "it is a directory, not a tar archive")
		}
		return added{}, fmt.Errorf("import %s: %w", shown(path), err)
	}
	return img, nil
}

func (a *loader) importTar(ctx context.Context, path, name string) (added, error) {
	if err := a.allowedFile(ctx, rootTar, path); err != nil {
		return added{}, err
	}
	b := layerBlob{Size: -1, Open: func(ctx context.Context) (io.ReadCloser, error) { return openInput(ctx, path) }}
	staged, rec, err := a.stage(ctx, b, func(int64) {})
	if err != nil {
		return added{}, err
	}
	if rec.Entries == 0 {
		return added{}, errors.Join(errors.New("there are no files in it"), removeTrees([]string{staged}))
	}
	if err := a.commitOnce(ctx, staged, rec); err != nil {
		return added{}, err
	}
	config, err := json.Marshal(v1.Image{
		Platform: v1.Platform{OS: "linux", Architecture: runtime.GOARCH},
		RootFS:   v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{rec.DiffID}},
		History:  []v1.History{{CreatedBy: "podrun image import"}},
	})
	if err != nil {
		return added{}, err
	}
	c := &candidate{config: config, layers: []layerBlob{{DiffID: rec.DiffID}}}
	return a.add(ctx, c, name, []string{name})
}

// commitOnce stores a staged layer unless it is there already.
func (a *adder) commitOnce(ctx context.Context, staged string, rec *layerRecord) error {
	unlock, err := a.lockLayer(ctx, rec.DiffID)
	if err != nil {
		return errors.Join(err, removeTrees([]string{staged}))
	}
	defer unlock()
	if _, err := a.s.readLayer(rec.DiffID); err == nil {
		return removeTrees([]string{staged})
	}
	return a.commit(staged, rec)
}
