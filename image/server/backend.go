// Package server is the server side of the image program: it adds images to a store and writes archives, and links
// the libraries for registries and signatures.
package server

import (
	"context"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/archive"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/image/registry"
)

// Backend adds images to a store.
type Backend struct{ *registry.Client }

// New returns a Backend for a store, with the configuration files in their usual locations.
func New(s *records.Store) Backend { return Backend{registry.NewClient(s)} }

// Load adds the images of a file or a directory. The images that could be added are returned with an error
// too.
func (s Backend) Load(ctx context.Context, p api.Location, onProgress func(api.Progress)) ([]api.Added, error) {
	return s.archives().Load(ctx, p, onProgress)
}

// Import makes an image from the tar file of a root file system.
func (s Backend) Import(ctx context.Context, path, name string) (api.Added, error) {
	return s.archives().Import(ctx, path, name)
}

// Save writes images into a directory, which is made if missing, or to a tar archive.
func (s Backend) Save(ctx context.Context, refs []string, to api.Target, o api.SaveOptions) error {
	if to.Dir == "" {
		return s.archives().Save(ctx, refs, archive.ToTar(to.Out, to.Scratch), o)
	}
	dir, err := archive.ToDir(to.Dir)
	if err != nil {
		return err
	}
	return s.archives().Save(ctx, refs, dir, o)
}

// Candidates returns the names that a reference may stand for.
func (s Backend) Candidates(_ context.Context, ref string) ([]string, error) {
	list, err := s.ShortNameCandidates(ref)
	var names []string
	for _, n := range list {
		names = append(names, n.String())
	}
	return names, err
}

func (s Backend) archives() *archive.Archiver {
	return &archive.Archiver{Ingester: s.Ingester, Checker: s.Checker}
}
