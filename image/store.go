package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/integrity"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
)

// Store is a directory of images. Any number of processes may use it at once.
type Store struct {
	*records.Store
	backend backend
	disk    func(dir string) (capacity, available int64, err error)
}

// Open opens the store in dir, which is made if missing and kept 0700: layers hold set-id files of the
// user's subordinate ids, which no other user may run.
func Open(dir string, p *Program) (*Store, error) {
	s, err := records.Open(dir)
	if err != nil {
		return nil, err
	}
	return &Store{s, remote{p, s.Dir}, diskOf}, nil
}

// backend adds images to a store, and writes images to archives and registries: remote, or in tests server.Backend.
type backend interface {
	Pull(ctx context.Context, ref string, o api.PullOptions) (api.Added, error)
	Load(ctx context.Context, p api.Location, onProgress func(api.Progress)) ([]api.Added, error)
	Import(ctx context.Context, path, name string) (api.Added, error)
	Save(ctx context.Context, refs []string, to api.Target, o api.SaveOptions) error
	Push(ctx context.Context, ref, to string, o api.PullOptions) (string, error)
	PushTree(ctx context.Context, dir, to string, annotations map[string]string, files map[string][]byte, o api.PullOptions) (string, error)
	Candidates(ctx context.Context, ref string) ([]string, error)
	Head(ctx context.Context, ref string, o api.PullOptions) (string, error)
}

// Resolve finds an image by name or by id ("sha256:…", or its 64 hexadecimal digits), without the network.
// The error is ErrNotFound if it is not there.
func (s *Store) Resolve(ref string) (pod.Image, error) {
	if id, ok := records.ParseID(ref); ok {
		return s.imageByID(id)
	}
	rec, err := s.lookupReference(ref)
	if err != nil {
		return pod.Image{}, err
	}
	return s.image(rec.ID, rec)
}

// lookupReference finds the record of a name that a reference may stand for. An image that was loaded from a
// file under a short name has a name of docker.io. An unreadable registries.conf does not prevent the use of
// stored images.
func (s *Store) lookupReference(ref string) (*records.Name, error) {
	name, err := records.ParseName(ref)
	if err != nil {
		return nil, err
	}
	for _, n := range append(s.candidates(ref), name) {
		rec, lerr := s.LookupName(n)
		if lerr == nil || !errors.Is(lerr, api.ErrNotFound) {
			return rec, lerr
		}
		err = lerr
	}
	return nil, err
}

// Pin returns a reference with a digest to an image that Resolve, Ensure or Pull has returned for a reference. It always
// stands for this image; an image without a name keeps its reference.
func (s *Store) Pin(ref string, img pod.Image) (string, error) {
	if img.Name == "" || records.IsPinned(ref) {
		return ref, nil
	}
	return s.Store.Pin(img.Name, digest.Digest(img.ID))
}

// FromRegistry reports whether a registry decides what a name stands for now: the name was pulled, not
// loaded, imported or tagged here, or it is not in the store.
func (s *Store) FromRegistry(ref string) bool {
	n, err := s.lookupReference(ref)
	if err != nil {
		return true
	}
	rec, err := s.ReadImage(n.ID)
	return err != nil || n.CanPullAgain(rec.Pulled)
}

func (s *Store) imageByID(id digest.Digest) (pod.Image, error) {
	names, _ := s.Names() // an image is found by its id even if some name is damaged
	for _, rec := range names {
		if rec.ID == id {
			return s.image(id, rec)
		}
	}
	return s.image(id, nil)
}

// image reads an image and checks that its layers are there. name may be nil.
func (s *Store) image(id digest.Digest, name *records.Name) (pod.Image, error) {
	rec, err := s.ReadImage(id)
	if errors.Is(err, fs.ErrNotExist) {
		return pod.Image{}, records.NotFound(id.String())
	}
	if err != nil {
		return pod.Image{}, err
	}
	config, err := rec.DecodeConfig()
	if err != nil {
		return pod.Image{}, err
	}
	layers, err := s.layerDirs(rec.DiffIDs)
	if err != nil {
		return pod.Image{}, report.New(report.Failure, "podrun image pull or podrun image load restores it",
			"image %s is incomplete: %w", id, err)
	}
	img := pod.Image{
		ID: id.String(), Digest: rec.Digest.String(), Layers: layers,
		Entrypoint: config.Config.Entrypoint, Cmd: config.Config.Cmd, Env: config.Config.Env,
		User: config.Config.User, WorkingDir: config.Config.WorkingDir, StopSignal: config.Config.StopSignal,
		Artifact: config.Config.Labels[records.ArtifactLabel],
	}
	if name != nil {
		img.Name, img.Digest = name.Name, name.Digest.String()
	}
	return img, nil
}

// layerDirs returns the overlay's lower directories for diffIDs, lowest first. Overlayfs refuses a directory
// that occurs twice, so only its uppermost occurrence is kept, which is the one with an effect. Overlayfs
// does not honour an opaque root either, so the layers below one are left out.
func (s *Store) layerDirs(diffIDs []digest.Digest) ([]string, error) {
	if err := integrity.Recheck(s.Store, diffIDs); err != nil {
		return nil, err
	}
	var dirs []string
	known := map[digest.Digest]bool{}
	for _, id := range slices.Backward(diffIDs) {
		if known[id] {
			continue
		}
		known[id] = true
		rec, err := s.ReadLayer(id)
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, filepath.Join(s.LayerDir(id), records.LayerFS))
		if rec.OpaqueRoot {
			break
		}
	}
	slices.Reverse(dirs)
	return dirs, nil
}

// Info is one image in a list.
type Info struct {
	ID           string   // sha256:<hex>
	Digest       string   // of the manifest, sha256:<hex>
	Names        []string // normalised, sorted; none if every name points to another image now
	Created      time.Time
	Added        time.Time
	Used         time.Time // last use by a pod, approximate; time of addition if no pod has used it
	Pulled       bool      // from a registry, where it can be pulled again
	OS, Arch     string
	Variant      string
	Size         int64 // bytes of its layers' files; layers are shared between images
	Layers       int
	SharedLayers int // layers that other images use too

	UnmappedOwners int // files that belong to id 0 because their owner is not mapped: see the package's doc
}

// WatchDirs returns the directories that change when images and their names do.
func (s *Store) WatchDirs() []string {
	return []string{filepath.Join(s.Dir, records.ImagesDir), filepath.Join(s.Dir, records.NamesDir)}
}

// List returns the images, newest first. If a record is damaged, the rest is returned together with the
// error.
func (s *Store) List() ([]Info, error) {
	images, err1 := s.Images()
	names, err2 := s.Names()
	byID := map[digest.Digest][]string{}
	for _, n := range names {
		byID[n.ID] = append(byID[n.ID], n.Name)
	}
	users := map[digest.Digest]int{}
	for _, rec := range images {
		for _, id := range records.UniqueDigests(rec.DiffIDs) {
			users[id]++
		}
	}
	var list []Info
	errs := []error{err1, err2}
	for _, rec := range images {
		info, err := s.info(rec, users)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		info.Names, info.Pulled = byID[rec.ID], rec.CanPullAgain(names)
		slices.Sort(info.Names)
		list = append(list, info)
	}
	slices.SortFunc(list, func(a, b Info) int {
		return cmp.Or(b.Added.Compare(a.Added), cmp.Compare(a.ID, b.ID))
	})
	return list, errors.Join(errs...)
}

func (s *Store) info(rec *records.Image, users map[digest.Digest]int) (Info, error) {
	config, err := rec.DecodeConfig()
	if err != nil {
		return Info{}, err
	}
	info := Info{
		ID: rec.ID.String(), Digest: rec.Digest.String(), Added: rec.Added,
		OS: config.OS, Arch: config.Architecture, Variant: config.Variant,
	}
	if config.Created != nil {
		info.Created = *config.Created
	}
	if st, err := os.Stat(s.ImageFile(rec.ID)); err == nil {
		info.Used = st.ModTime()
	}
	for _, id := range records.UniqueDigests(rec.DiffIDs) {
		layer, err := s.ReadLayer(id)
		if err != nil {
			return Info{}, fmt.Errorf("image %s is incomplete: %w", rec.ID, err)
		}
		info.Layers++
		info.Size += layer.Bytes
		info.UnmappedOwners += layer.UnmappedOwners
		if users[id] > 1 {
			info.SharedLayers++
		}
	}
	return info, nil
}
