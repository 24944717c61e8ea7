package image

import (
	"context"
	"errors"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/integrity"
	"github.com/podrun/podrun/internal/pod"
)

// Pull fetches an image from its registry and returns it. Layers in the store are not fetched again; for a
// complete image only the manifest is fetched. registries.conf(5) configures mirrors, blocked registries and
// short names, and policy.json(5) decides which images are allowed. The fetched part of a layer is kept when
// a pull is interrupted, and the next pull continues from there. Errors have reason ErrImagePull,
// InvalidImageName or SignatureValidationFailed.
func (s *Store) Pull(ctx context.Context, ref string, o api.PullOptions) (pod.Image, error) {
	a, err := s.backend.Pull(ctx, ref, o)
	if err != nil {
		return pod.Image{}, err
	}
	return s.resolveAdded(a)
}

// Head returns the digest for which a name stands in its registry now, and the stored image if the name stood for the
// same digest when it was pulled. It pulls nothing.
func (s *Store) Head(ctx context.Context, ref string, o api.PullOptions) (digest string, img pod.Image, err error) {
	if digest, err = s.backend.Head(ctx, ref, o); err != nil {
		return "", pod.Image{}, err
	}
	if rec, err := s.lookupReference(ref); err == nil && rec.Top.String() == digest {
		img, _ = s.image(rec.ID, rec) // incomplete: it is pulled again
	}
	return digest, img, nil
}

// Fetch adds the images of a location to the store.
func (s *Store) Fetch(ctx context.Context, p api.Location, o api.PullOptions) ([]pod.Image, error) {
	if p.Transport == "docker" {
		img, err := s.Pull(ctx, p.Path, o)
		if err != nil {
			return nil, err
		}
		return []pod.Image{img}, nil
	}
	return s.loadFrom(ctx, p, o.Progress)
}

// Load adds every image of an OCI layout directory, an OCI archive or a docker archive; an archive may be
// compressed with gzip or zstd. The kind is detected from the content. Images keep the names they were saved
// under; one without a name is found by its id. The images that could be added are returned with an error
// too.
func (s *Store) Load(ctx context.Context, path string) ([]pod.Image, error) {
	return s.loadFrom(ctx, api.Location{Path: path}, nil)
}

// LoadAll loads everything that findArchives finds, as far as possible. onProgress, if not nil, receives progress.
func (s *Store) LoadAll(ctx context.Context, path string, onProgress func(api.Progress)) ([]pod.Image, error) {
	list, err := findArchives(path)
	if err != nil {
		return nil, err
	}
	var images []pod.Image
	var errs []error
	for _, name := range list {
		some, err := s.loadFrom(ctx, api.Location{Path: name}, onProgress)
		images, errs = append(images, some...), append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return images, errors.Join(errs...)
}

func (s *Store) loadFrom(ctx context.Context, p api.Location, onProgress func(api.Progress)) ([]pod.Image, error) {
	list, err := s.backend.Load(ctx, p, onProgress)
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

// Import makes an image with one layer and no command from the tar file of a root file system, plain or
// compressed with gzip or zstd. The same file gives the same image id.
func (s *Store) Import(ctx context.Context, path, name string) (pod.Image, error) {
	a, err := s.backend.Import(ctx, path, name)
	if err != nil {
		return pod.Image{}, err
	}
	return s.resolveAdded(a)
}

// Save writes images to w, or for OCIDir to a directory, under the names that refs gives. The same images
// give the same bytes. Layers are rebuilt from their unpacked files and compared with their digests: damaged
// layers are not saved.
func (s *Store) Save(ctx context.Context, refs []string, to api.Target, o api.SaveOptions) error {
	return s.backend.Save(ctx, refs, to, o)
}

// Push writes an image to a registry under the name to, or its own name if to is "". It returns
// REPOSITORY@DIGEST of the manifest there, whose digest differs from the stored one unless the repository has
// the layers that the image was pulled with.
func (s *Store) Push(ctx context.Context, ref, to string, o api.PullOptions) (string, error) {
	return s.backend.Push(ctx, ref, to, o)
}

// PushTree writes the files of a directory to a registry, as an artifact that podrun and Flux read manifests from. Those in
// files have other contents. It returns REPOSITORY@DIGEST.
func (s *Store) PushTree(ctx context.Context, dir, to string, annotations map[string]string, files map[string][]byte, o api.PullOptions) (string, error) {
	return s.backend.PushTree(ctx, dir, to, annotations, files, o)
}

// Verify reads every file of images, all if refs is empty, and compares it with the images' digests. A
// damaged layer is not used for further pods. onProgress, if not nil, is called before each image is read.
func (s *Store) Verify(ctx context.Context, refs []string, onProgress func(name string)) ([]api.Verified, error) {
	return integrity.Verify(ctx, s.Store, refs, onProgress)
}

// Repair restores a damaged image from its registry. Only the damaged layers are fetched and replaced.
// Running pods keep their files until they are restarted. A name's record is restored if its content can be
// determined, or else removed.
func (s *Store) Repair(ctx context.Context, v api.Verified, o api.PullOptions) error {
	return integrity.Repair(ctx, s.Store, v, func(ctx context.Context, ref string, unnamed bool) (string, error) {
		o.NoName = unnamed
		img, err := s.Pull(ctx, ref, o)
		return img.ID, err
	})
}

// resolveAdded returns an added image, under its name.
func (s *Store) resolveAdded(a api.Added) (pod.Image, error) {
	if a.Name == "" {
		return s.imageByID(a.ID)
	}
	return s.Resolve(a.Name)
}
