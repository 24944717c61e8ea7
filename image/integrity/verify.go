package integrity

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/layer"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/image/reference"
)

// Verify reads every file of images, all if refs is empty, and compares it with the images' digests. A
// damaged layer is not used for further pods. onProgress, if not nil, is called before each image is read.
func Verify(ctx context.Context, s *records.Store, refs []string, onProgress func(name string)) ([]api.Verified, error) {
	hold, err := s.Lease()
	if err != nil {
		return nil, err
	}
	defer hold.Close()
	list, err := inventory(s)
	if err != nil {
		return nil, err
	}
	if len(refs) > 0 {
		if list, err = selectImages(s, list, refs); err != nil {
			return nil, err
		}
	}
	known := map[digest.Digest][]api.Damage{} // layers are shared
	for i := range list {
		v := &list[i]
		if onProgress != nil {
			onProgress(v.Name())
		}
		if v.ID == "" || len(v.Damage) > 0 {
			continue
		}
		rec, err := s.ReadImage(digest.Digest(v.ID))
		if errors.Is(err, fs.ErrNotExist) { // removed in between
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, id := range records.UniqueDigests(rec.DiffIDs) {
			damage, ok := known[id]
			if !ok {
				if damage, err = verifyLayer(ctx, s, id); err != nil {
					return nil, err
				}
				known[id] = damage
			}
			v.Layers++
			v.Damage = append(v.Damage, damage...)
		}
	}
	return list, nil
}

// inventory lists all images, and the records that are unreadable or do not match their names.
func inventory(s *records.Store) ([]api.Verified, error) {
	var list []api.Verified
	byID := map[string]int{}
	images, err := os.ReadDir(filepath.Join(s.Dir, records.ImagesDir))
	if err != nil {
		return nil, fmt.Errorf("verify images: %w", err)
	}
	for _, e := range images {
		hex, ok := strings.CutSuffix(e.Name(), ".json")
		if id, whole := records.ParseID(hex); ok && whole {
			v := api.Verified{ID: id.String()}
			if err := verifyRecord(s, id); err != nil {
				v.Damage, v.RecordFile = []api.Damage{{What: err.Error()}}, s.ImageFile(id)
			}
			byID[v.ID] = len(list)
			list = append(list, v)
		}
	}
	names, err := os.ReadDir(filepath.Join(s.Dir, records.NamesDir))
	if err != nil {
		return nil, fmt.Errorf("verify images: %w", err)
	}
	for _, e := range names {
		file := filepath.Join(s.Dir, records.NamesDir, e.Name())
		rec, err := records.ReadRecord[records.Name](file)
		switch {
		case strings.HasPrefix(e.Name(), "."), errors.Is(err, fs.ErrNotExist):
			continue
		case err == nil && s.NameFile(rec.Name) != file:
			err = fmt.Errorf("%s is damaged: it is not of the name %q", file, rec.Name)
		}
		if err != nil {
			v := api.Verified{Damage: []api.Damage{{What: err.Error()}}, RecordFile: file}
			if rec := s.ReadDamagedName(file); rec != nil {
				v.Names = []string{rec.Name}
			}
			list = append(list, v)
			continue
		}
		i, ok := byID[rec.ID.String()]
		if !ok {
			i = len(list)
			byID[rec.ID.String()] = i
			list = append(list, api.Verified{ID: rec.ID.String(), Damage: []api.Damage{{What: "its record does not exist"}}})
		}
		list[i].Names = append(list[i].Names, rec.Name)
		if named, err := reference.ParseFull(rec.Name); err == nil {
			list[i].References = append(list[i].References, named.Repository()+"@"+rec.Top.String())
		}
	}
	for i := range list {
		slices.Sort(list[i].Names)
	}
	return list, nil
}

// verifyRecord compares an image's record with its digests.
func verifyRecord(s *records.Store, id digest.Digest) error {
	rec, err := s.ReadImage(id)
	if err != nil {
		return err
	}
	diffIDs, err := records.CheckConfig([]byte(rec.Config))
	switch {
	case err != nil:
		return err
	case digest.FromString(rec.Config) != id, digest.FromString(rec.Manifest) != rec.Digest, !slices.Equal(diffIDs, rec.DiffIDs):
		return fmt.Errorf("%s is damaged: it does not match its digests", s.ImageFile(id))
	}
	return nil
}

// selectImages returns the images of list that refs names.
func selectImages(s *records.Store, list []api.Verified, refs []string) ([]api.Verified, error) {
	var chosen []api.Verified
	for _, ref := range refs {
		id := ""
		if rec, _, err := s.Find(ref); err == nil {
			id = rec.String()
		} else {
			return nil, fmt.Errorf("verify %s: %w", ref, err)
		}
		for _, v := range list {
			if v.ID == id && !slices.ContainsFunc(chosen, func(o api.Verified) bool { return o.ID == id }) {
				chosen = append(chosen, v)
			}
		}
	}
	return chosen, nil
}

// verifyLayer returns the damage of a layer, and marks a damaged one.
func verifyLayer(ctx context.Context, s *records.Store, id digest.Digest) ([]api.Damage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, err := records.ReadRecord[records.Layer](filepath.Join(s.LayerDir(id), records.LayerFile)); err != nil {
		return []api.Damage{{Layer: id.String(), What: err.Error()}}, nil
	}
	r, err := layer.Rebuild(id, s.LayerDir(id), false, nil)
	if err != nil {
		return []api.Damage{{Layer: id.String(), What: err.Error()}}, nil
	}
	bad := r.Changed
	if len(bad) == 0 && !r.Replaced && r.DiffID != id {
		bad = []layer.ChangedFile{{Name: layer.RecipeFile, Why: "the record of the layer's files has changed"}}
	}
	if len(bad) == 0 {
		return nil, s.ClearDamaged(id)
	}
	var list []api.Damage
	for _, b := range bad {
		list = append(list, api.Damage{Layer: id.String(), What: b.Name + ": " + b.Why})
	}
	return list, ignoreNoSpace(s.MarkDamaged(id, summarize(bad)))
}
