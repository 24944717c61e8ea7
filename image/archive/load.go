package archive

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/ingest"
	"github.com/podrun/podrun/image/policy"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/internal/report"
)

// Archiver adds images from archives and writes archives.
type Archiver struct {
	*ingest.Ingester
	policy.Checker
}

// loader adds the images of one archive.
type loader struct {
	*ingest.Tx
	policy.Checker
}

// archivedImage is one image of an archive.
type archivedImage struct {
	names []string // as written in the archive
	fetch func(ctx context.Context) (*ingest.Candidate, error)

	restore func(*ingest.Candidate) // of an image that podrun has saved; may be nil
}

func (a *loader) load(ctx context.Context, p api.Location) ([]api.Added, error) {
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
		return nil, report.New(report.Usage, fmt.Sprintf("podrun image pull %s:%s", transport, p.Path), "it is not %s but %s", p.Transport, transport)
	}
	refused := a.CheckFile(ctx, transport, p.Path)
	list, about, err := listImages(a.Ingester.Store, f, transport, raw)
	if refused != nil && len(about) == 0 {
		return nil, refused
	}
	check := func(c *ingest.Candidate) error {
		if refused == nil {
			return nil
		}
		return a.CheckSigned(ctx, transport, p.Path, signed(f, about, c), filepath.Join(a.Ingester.Dir, records.StagingDir))
	}
	if err == nil {
		list, err = selectImages(p, list)
	}
	if err != nil {
		return nil, err
	}
	var images []api.Added
	var errs []error
	for _, item := range list {
		img, err := a.addArchived(ctx, item, check)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		images = append(images, img)
	}
	return images, errors.Join(errs...)
}

// listImages lists the images in files of one kind, and of a layout the signatures. Current versions of docker save write both kinds: the
// OCI layout has more information.
func listImages(s *records.Store, f files, transport string, raw []byte) (list []archivedImage, about []attached, err error) {
	switch transport {
	case api.OCILayout, api.OCIArchive:
		return layoutImages(s, f, raw)
	case api.Dir:
		list, err = dirImages(s, f, raw)
	default:
		list, err = dockerImages(f, raw)
	}
	return list, nil, err
}

// addArchived adds an image of an archive, unless check refuses it.
func (a *loader) addArchived(ctx context.Context, item archivedImage, check func(*ingest.Candidate) error) (api.Added, error) {
	var names []string
	for _, n := range item.names {
		name, err := records.ParseName(n)
		if err != nil {
			return api.Added{}, err
		}
		names = append(names, name.String())
	}
	requested := ""
	if len(item.names) > 0 {
		requested = item.names[0]
	}
	c, err := item.fetch(ctx)
	if err == nil {
		err = check(c)
	}
	if err == nil && item.restore != nil {
		item.restore(c)
	}
	if err == nil {
		var img api.Added
		if img, err = a.Add(ctx, c, requested, names); err == nil {
			return img, nil
		}
	}
	if requested != "" {
		err = fmt.Errorf("image %s: %w", requested, err)
	}
	return api.Added{}, err
}
