package image

import (
	"context"
	"errors"
	"fmt"

	"github.com/podrun/podrun/internal/report"
)

// archives adds images from archives, and writes some.
type archives struct {
	*ingestStore
	policyChecker
}

// loader adds the images of one archive.
type loader struct {
	*adder
	policyChecker
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

func (a *loader) load(ctx context.Context, p Place) ([]added, error) {
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
	if err := a.allowedFile(ctx, transport, p.Path); err != nil {
		return nil, err
	}
	list, err := archivedImages(a.s.recordStore, f, transport, raw)
	if err == nil {
		list, err = p.picked(list)
	}
	if err != nil {
		return nil, err
	}
	var images []added
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
func archivedImages(s *recordStore, f files, transport string, raw []byte) ([]archived, error) {
	switch transport {
	case ociLayout, OCIArchive:
		return layoutImages(s, f, raw)
	case plainDir:
		return dirImages(s, f, raw)
	}
	return dockerImages(f, raw)
}

func (a *loader) addArchived(ctx context.Context, item archived) (added, error) {
	var names []string
	for _, n := range item.names {
		name, err := parseName(n)
		if err != nil {
			return added{}, err
		}
		names = append(names, name.String())
	}
	asked := ""
	if len(item.names) > 0 {
		asked = item.names[0]
	}
	c, err := item.fetch(ctx)
	if err == nil {
		var img added
		if img, err = a.add(ctx, c, asked, names); err == nil {
			return img, nil
		}
	}
	if asked != "" {
		err = fmt.Errorf("image %s: %w", asked, err)
	}
	return added{}, err
}
