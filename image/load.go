package image

import (
	"context"
	"errors"
	"fmt"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/pod"
)

// Load adds every image of an OCI layout directory, an OCI archive or a docker
// archive; an archive may be compressed with gzip or zstd. Which it is is seen from
// its content. Images have the names they were saved under; one without is found
// by its id. The images that could be added are returned with an error too.
func (s *Store) Load(ctx context.Context, path string) ([]pod.Image, error) {
	return s.LoadWith(ctx, path, nil)
}

// LoadWith is Load with a report of the progress.
func (s *Store) LoadWith(ctx context.Context, path string, tell func(Progress)) ([]pod.Image, error) {
	return s.loadPlace(ctx, Place{Path: path}, tell)
}

// shown is a path as messages have it.
func shown(path string) string {
	if path == "/dev/stdin" {
		return "standard input"
	}
	return path
}

// archived is one image of an archive.
type archived struct {
	names []string // as in the archive
	fetch func(ctx context.Context) (*candidate, error)
}

func (a *adder) load(ctx context.Context, p Place) ([]pod.Image, error) {
	f, err := a.openFiles(ctx, p.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	transport, raw, err := transportOf(f)
	if err != nil {
		return nil, err
	}
	if p.Transport != "" && p.Transport != transport {
		return nil, report.New(report.Usage, fmt.Sprintf("podrun image pull %s:%s", transport, p.Path), "it is no %s, but %s", p.Transport, transport)
	}
	if err := a.s.allowedFile(ctx, transport, p.Path); err != nil {
		return nil, err
	}
	list, err := a.s.archivedImages(f, transport, raw)
	if err == nil {
		list, err = p.picked(list)
	}
	if err != nil {
		return nil, err
	}
	var images []pod.Image
	var errs []error
	for _, item := range list {
		img, err := a.addArchived(ctx, item)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		images = append(images, img)
	}
	return images, errors.Join(errs...)
}

// archivedImages lists what is in files of a kind. Current versions of docker save write
// both: the OCI layout says more.
func (s *Store) archivedImages(f files, transport string, raw []byte) ([]archived, error) {
	switch transport {
	case ociLayout, ociArchive:
		return s.layoutImages(f, raw)
	case plainDir:
		return s.dirImages(f, raw)
	}
	return s.dockerImages(f, raw)
}

func (a *adder) addArchived(ctx context.Context, item archived) (pod.Image, error) {
	var names []string
	for _, n := range item.names {
		name, err := parseName(n)
		if err != nil {
			return pod.Image{}, err
		}
		names = append(names, name.String())
	}
	asked := ""
	if len(item.names) > 0 {
		asked = item.names[0]
	}
	c, err := item.fetch(ctx)
	if err == nil {
		var img pod.Image
		if img, err = a.add(ctx, c, asked, names); err == nil {
			return img, nil
		}
	}
	if asked != "" {
		err = fmt.Errorf("image %s: %w", asked, err)
	}
	return pod.Image{}, err
}
