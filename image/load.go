package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

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
	a, err := s.begin(ctx, tell)
	if err != nil {
		return nil, err
	}
	defer a.end()
	images, err := a.load(ctx, path)
	if err != nil {
		return images, fmt.Errorf("load %s: %w", shown(path), err)
	}
	return images, nil
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

func (a *adder) load(ctx context.Context, path string) ([]pod.Image, error) {
	f, err := a.openFiles(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := a.s.archivedImages(f)
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

// archivedImages tells the formats apart. Current versions of docker save write
// both: the OCI layout says more.
func (s *Store) archivedImages(f files) ([]archived, error) {
	index, err := readSmall(f, "index.json")
	if err == nil {
		return s.layoutImages(f, index)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	list, err := readSmall(f, "manifest.json")
	if err == nil {
		return s.dockerImages(f, list)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return nil, report.New(report.Usage, "podrun image import FILE NAME makes an image from a root file system",
		"it is not an image: neither index.json (OCI) nor manifest.json (docker) is in it")
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
