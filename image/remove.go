package image

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/podrun/podrun/image/layer"
	"github.com/podrun/podrun/image/records"
)

// RemoveOptions reports what else needs images.
type RemoveOptions struct {
	// InUse reports whether a pod uses a layer (one of pod.Image.Layers). Such layers stay, and a later
	// Remove frees them. nil means that no pod does.
	InUse func(layerDir string) bool
}

// Remove removes a name, and with its last name the image; or an image with its only name, by its id or an
// unambiguous prefix of at least four digits. It frees the layers that neither an image nor a pod uses,
// including those that earlier calls left behind, unless another process adds or uses images at this moment:
// then they stay until the next Remove.
func (s *Store) Remove(nameOrID string, o RemoveOptions) error {
	err := s.RemoveRecords(nameOrID)
	if err != nil {
		return fmt.Errorf("remove image %s: %w", nameOrID, err)
	}
	if _, err := s.freeLayers(o.InUse); err != nil {
		return fmt.Errorf("free layers of image %s: %w", nameOrID, err)
	}
	return nil
}

// freeLayers removes unused layers, if no other process adds or uses images, and returns the size of their
// files in bytes.
func (s *Store) freeLayers(inUse func(string) bool) (int64, error) {
	lock, err := s.Lock()
	if err != nil {
		return 0, err
	}
	defer lock.Close()
	if alone, err := lock.TryExclusive(); err != nil || !alone {
		return 0, err
	}
	stale, err := s.StaleStaging()
	if err != nil {
		return 0, err
	}
	unused, err := s.unusedLayers(inUse)
	if err != nil {
		return 0, err
	}
	retired, err := s.UnusedRetired(inUse)
	if err != nil {
		return 0, err
	}
	stale = append(stale, retired...)
	var freed int64
	for _, layer := range unused {
		if rec, err := records.ReadRecord[records.Layer](filepath.Join(layer, records.LayerFile)); err == nil {
			freed += rec.Bytes
		}
		gone, err := s.MoveToStaging(layer)
		if err != nil {
			return 0, err
		}
		stale = append(stale, gone)
	}
	if err := lock.Shared(); err != nil {
		return 0, err
	}
	return freed, layer.RemoveTrees(stale)
}

// unusedLayers lists the directories of layers that no image and no pod needs. If any image is unreadable,
// its layers are unknown, so none is listed.
func (s *Store) unusedLayers(inUse func(string) bool) ([]string, error) {
	images, err := s.Images()
	if err != nil {
		return nil, err
	}
	needed := map[string]bool{}
	for _, rec := range images {
		for _, id := range rec.DiffIDs {
			needed[id.Encoded()] = true
		}
	}
	entries, err := os.ReadDir(filepath.Join(s.Dir, records.LayersDir))
	if err != nil {
		return nil, err
	}
	var unused []string
	for _, e := range entries {
		dir := filepath.Join(s.Dir, records.LayersDir, e.Name())
		if !needed[e.Name()] && (inUse == nil || !inUse(filepath.Join(dir, records.LayerFS))) {
			unused = append(unused, dir)
		}
	}
	return unused, nil
}
