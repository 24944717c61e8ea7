package image

import (
	"context"
	"errors"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/archive"
	"github.com/podrun/podrun/image/ingest"
	"github.com/podrun/podrun/image/integrity"
	"github.com/podrun/podrun/pod"
)

// Pull fetches an image from its registry and returns it. Layers that are in the
// store are not fetched; an image that is there whole costs its manifest only.
// Mirrors, blocked registries and short names are those of registries.conf(5), and
// policy.json(5) says which images may be had. What was fetched of a layer before the
// pull was cut off is kept, and the next one goes on from there. Errors have reason
// ErrImagePull, InvalidImageName or SignatureValidationFailed.
func (s *Store) Pull(ctx context.Context, ref string, o api.PullOptions) (pod.Image, error) {
	a, err := s.Client.Pull(ctx, ref, o)
	if err != nil {
		return pod.Image{}, err
	}
	return s.resolveAdded(a)
}

// Fetch brings the images of a place into the store.
func (s *Store) Fetch(ctx context.Context, p api.Place, o api.PullOptions) ([]pod.Image, error) {
	if p.Transport == "docker" {
		img, err := s.Pull(ctx, p.Path, o)
		if err != nil {
			return nil, err
		}
		return []pod.Image{img}, nil
	}
	return s.loadPlace(ctx, p, o.Progress)
}

// Load adds every image of an OCI layout directory, an OCI archive or a docker
// archive; an archive may be compressed with gzip or zstd. Which it is is seen from
// its content. Images have the names they were saved under; one without is found
// by its id. The images that could be added are returned with an error too.
func (s *Store) Load(ctx context.Context, path string) ([]pod.Image, error) {
	return s.loadPlace(ctx, api.Place{Path: path}, nil)
}

// LoadAll loads what Archives finds, and what it can of it.
func (s *Store) LoadAll(ctx context.Context, path string, tell func(api.Progress)) ([]pod.Image, error) {
	list, err := archive.FindArchives(path)
	if err != nil {
		return nil, err
	}
	var images []pod.Image
	var errs []error
	for _, own := range list {
		some, err := s.loadPlace(ctx, api.Place{Path: own}, tell)
		images, errs = append(images, some...), append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return images, errors.Join(errs...)
}

func (s *Store) loadPlace(ctx context.Context, p api.Place, tell func(api.Progress)) ([]pod.Image, error) {
	list, err := s.archives().Load(ctx, p, tell)
	errs := []error{err}
	var images []pod.Image
	for _, a := range list {
		img, err := s.resolveAdded(a)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		images = append(images, img)
	}
	return images, errors.Join(errs...)
}

// Import makes an image with one layer and no command from the tar file of a root
// file system, plain or compressed with gzip or zstd. The same file gives the same
// image id.
func (s *Store) Import(ctx context.Context, path, name string) (pod.Image, error) {
	a, err := s.archives().Import(ctx, path, name)
	if err != nil {
		return pod.Image{}, err
	}
	return s.resolveAdded(a)
}

// Save writes images to w, or for OCIDir to a directory, with the names they were asked for
// by. The same images give the same bytes. Layers are made of their unpacked files and
// compared with their digests meanwhile: what is damaged is not saved.
func (s *Store) Save(ctx context.Context, refs []string, to archive.Target, o api.SaveOptions) error {
	return s.archives().Save(ctx, refs, to, o)
}

// Verify reads every file of images, all if none is named, and compares it with what the
// images' digests stand for. What is damaged is not used for a new pod from then on. tell,
// if it is not nil, is told of each image before it is read.
func (s *Store) Verify(ctx context.Context, refs []string, tell func(name string)) ([]api.Verified, error) {
	return integrity.Verify(ctx, s.Store, refs, tell)
}

// Repair puts a damaged image back from its registry: the damaged layers alone are
// fetched, and replaced. Pods that run keep the files they have until they are started
// anew. A name's record is put back if it can be told what it was, or else removed.
func (s *Store) Repair(ctx context.Context, v api.Verified, o api.PullOptions) error {
	return integrity.Repair(ctx, s.Store, v, func(ctx context.Context, ref string, unnamed bool) (string, error) {
		o.NoName = unnamed
		img, err := s.Pull(ctx, ref, o)
		return img.ID, err
	})
}

func (s *Store) archives() *archive.Archiver {
	return &archive.Archiver{Ingester: s.Ingester, Checker: s.Checker}
}

// resolveAdded is an image that has been added, under its name.
func (s *Store) resolveAdded(a ingest.Added) (pod.Image, error) {
	if a.Name == "" {
		return s.imageByID(a.ID)
	}
	return s.Resolve(a.Name)
}

// Memory is what Go may have in a process that adds images, in bytes: for
// debug.SetMemoryLimit. Without a limit the collector would let twice as much pile up.
const Memory = 24 << 20
