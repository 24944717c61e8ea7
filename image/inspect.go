package image

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/image/reference"
	"github.com/podrun/podrun/internal/pod"
)

// Inspection is everything the store records about an image. Its JSON has the field names of docker's and
// podman's inspect.
type Inspection struct {
	ID           string     `json:"Id"` // sha256:<hex>
	Digest       string     // of the manifest
	RepoTags     []string   // its names with a tag
	RepoDigests  []string   // its names by digest
	Created      *time.Time `json:",omitempty"`
	Added        time.Time  // when it was added to this machine
	Author       string     `json:",omitempty"`
	Architecture string     // as Go spells it: amd64
	Variant      string     `json:",omitempty"`
	Os           string
	Size         int64          // bytes of its files
	Pulled       bool           // from a registry, where it can be pulled again
	Config       v1.ImageConfig // defaults of a container, which its manifest overrides
	RootFS       v1.RootFS
	History      []v1.History
	Layers       []Layer // lowest first, one for each of RootFS
}

// Layer is one layer of an image, as stored.
type Layer struct {
	DiffID  string // sha256:<hex> of its tar stream
	Dir     string // where it is unpacked
	Size    int64  // bytes of its files
	Entries int    // of its tar stream
	Shared  bool   // with other images
}

// Inspect returns what the store records about an image. The error is ErrNotFound if the image is not there.
func (s *Store) Inspect(ref string) (*Inspection, error) {
	id, _, err := s.Find(ref)
	if err != nil {
		return nil, fmt.Errorf("inspect %s: %w", ref, err)
	}
	rec, err := s.ReadImage(id)
	if err != nil {
		return nil, fmt.Errorf("inspect %s: %w", ref, err)
	}
	config, err := rec.DecodeConfig()
	if err != nil {
		return nil, fmt.Errorf("inspect %s: %w", ref, err)
	}
	d := &Inspection{
		ID: id.String(), Digest: rec.Digest.String(), RepoTags: []string{}, RepoDigests: []string{},
		Created: config.Created, Added: rec.Added, Author: config.Author,
		Architecture: config.Architecture, Variant: config.Variant, Os: config.OS,
		Config: config.Config, RootFS: config.RootFS, History: config.History, Layers: []Layer{},
	}
	names, err1 := s.Names()
	d.Pulled = rec.CanPullAgain(names)
	for _, n := range names {
		if n.ID == id {
			d.addName(n)
		}
	}
	slices.Sort(d.RepoTags)
	slices.Sort(d.RepoDigests)
	d.RepoDigests = slices.Compact(d.RepoDigests)
	return d, errors.Join(err1, s.describeLayers(d, rec))
}

// Annotations returns the annotations of an image's manifest and of its layers; none if the store has another manifest
// of the same image.
func (s *Store) Annotations(img pod.Image) (of map[string]string, layers []map[string]string, err error) {
	rec, err := s.ReadImage(digest.Digest(img.ID))
	if err != nil || rec.Digest.String() != img.Digest {
		return nil, nil, err
	}
	var m v1.Manifest
	if err := json.Unmarshal([]byte(rec.Manifest), &m); err != nil {
		return nil, nil, fmt.Errorf("read manifest of %s: %w", img.ID, err)
	}
	for _, l := range m.Layers {
		layers = append(layers, l.Annotations)
	}
	return m.Annotations, layers, nil
}

func (d *Inspection) addName(n *records.Name) {
	named, err := reference.ParseFull(n.Name)
	if err != nil {
		return
	}
	if named.Tag != "" {
		d.RepoTags = append(d.RepoTags, n.Name)
	}
	for _, digest := range []digest.Digest{n.Top, n.Digest} {
		d.RepoDigests = append(d.RepoDigests, named.Repository()+"@"+digest.String())
	}
}

func (s *Store) describeLayers(d *Inspection, rec *records.Image) error {
	images, err := s.Images()
	if err != nil {
		return err
	}
	users := map[digest.Digest]int{}
	for _, i := range images {
		for _, id := range records.UniqueDigests(i.DiffIDs) {
			users[id]++
		}
	}
	counted := map[digest.Digest]bool{}
	for _, id := range rec.DiffIDs {
		l := Layer{DiffID: id.String(), Dir: s.LayerDir(id) + "/" + records.LayerFS, Shared: users[id] > 1}
		layer, err := s.ReadLayer(id)
		if err != nil {
			return fmt.Errorf("image %s is incomplete: %w", rec.ID, err)
		}
		l.Size, l.Entries = layer.Bytes, layer.Entries
		if !counted[id] {
			d.Size += l.Size
		}
		counted[id] = true
		d.Layers = append(d.Layers, l)
	}
	return nil
}
