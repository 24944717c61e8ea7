package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containers/image/v5/docker/reference"
	"github.com/opencontainers/go-digest"

	"github.com/podrun/podrun/internal/report"
)

// Verified is what was found of one image, or of a record that is no image's any more.
type Verified struct {
	ID     string   // sha256:<hex>; "" of a name's record that cannot be read
	Names  []string // normalised, sorted
	Layers int      // that were read
	Damage []Damage // none: the image is whole

	tops []string // what the names stand for, as references by digest
	file string   // of a record that cannot be read
}

// Damage is one thing that is wrong with an image.
type Damage struct {
	Layer string // sha256:<hex>; "" if it is a record that is damaged
	What  string // usr/bin/env: its content has changed
}

func (d Damage) String() string {
	if d.Layer == "" {
		return d.What
	}
	return "layer " + d.Layer + ": " + d.What
}

// Name is what a user calls the image.
func (v *Verified) Name() string {
	switch {
	case len(v.Names) > 0:
		return v.Names[0]
	case v.ID != "":
		return v.ID
	}
	return v.file
}

// verify reads every file of images, all if none is named, and compares it with what the
// images' digests stand for. What is damaged is not used for a new pod from then on. tell,
// if it is not nil, is told of each image before it is read.
func verify(ctx context.Context, s *recordStore, refs []string, tell func(name string)) ([]Verified, error) {
	hold, err := s.Hold()
	if err != nil {
		return nil, err
	}
	defer hold.Close()
	list, err := inventory(s)
	if err != nil {
		return nil, err
	}
	if len(refs) > 0 {
		if list, err = choosed(s, list, refs); err != nil {
			return nil, err
		}
	}
	known := map[digest.Digest][]Damage{} // layers are shared
	for i := range list {
		v := &list[i]
		if tell != nil {
			tell(v.Name())
		}
		if v.ID == "" || len(v.Damage) > 0 {
			continue
		}
		rec, err := s.readImage(digest.Digest(v.ID))
		if errors.Is(err, fs.ErrNotExist) { // removed this moment
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, id := range unique(rec.DiffIDs) {
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

// inventory lists all images, and the records that cannot be read or are not what their
// names say.
func inventory(s *recordStore) ([]Verified, error) {
	var list []Verified
	byID := map[string]int{}
	images, err := os.ReadDir(filepath.Join(s.dir, imagesDir))
	if err != nil {
		return nil, fmt.Errorf("verify images: %w", err)
	}
	for _, e := range images {
		hex, ok := strings.CutSuffix(e.Name(), ".json")
		if id, whole := parseID(hex); ok && whole {
			v := Verified{ID: id.String()}
			if err := verifyRecord(s, id); err != nil {
				v.Damage, v.file = []Damage{{What: err.Error()}}, s.imageFile(id)
			}
			byID[v.ID] = len(list)
			list = append(list, v)
		}
	}
	names, err := os.ReadDir(filepath.Join(s.dir, namesDir))
	if err != nil {
		return nil, fmt.Errorf("verify images: %w", err)
	}
	for _, e := range names {
		file := filepath.Join(s.dir, namesDir, e.Name())
		rec, err := readRecord[nameRecord](file)
		switch {
		case strings.HasPrefix(e.Name(), "."), errors.Is(err, fs.ErrNotExist):
			continue
		case err == nil && s.nameFile(rec.Name) != file:
			err = fmt.Errorf("%s is damaged: it is not of the name %q", file, rec.Name)
		}
		if err != nil {
			v := Verified{Damage: []Damage{{What: err.Error()}}, file: file}
			if rec := s.readable(file); rec != nil {
				v.Names = []string{rec.Name}
			}
			list = append(list, v)
			continue
		}
		i, ok := byID[rec.ID.String()]
		if !ok {
			i = len(list)
			byID[rec.ID.String()] = i
			list = append(list, Verified{ID: rec.ID.String(), Damage: []Damage{{What: "its record is not there"}}})
		}
		list[i].Names = append(list[i].Names, rec.Name)
		if named, err := reference.ParseNamed(rec.Name); err == nil {
			list[i].tops = append(list[i].tops, reference.TrimNamed(named).Name()+"@"+rec.Top.String())
		}
	}
	for i := range list {
		slices.Sort(list[i].Names)
	}
	return list, nil
}

// verifyRecord compares an image's record with its digests.
func verifyRecord(s *recordStore, id digest.Digest) error {
	rec, err := s.readImage(id)
	if err != nil {
		return err
	}
	diffIDs, err := readDiffIDs([]byte(rec.Config))
	switch {
	case err != nil:
		return err
	case digest.FromString(rec.Config) != id, digest.FromString(rec.Manifest) != rec.Digest, !slices.Equal(diffIDs, rec.DiffIDs):
		return fmt.Errorf("%s is damaged: it is not what its digests say", s.imageFile(id))
	}
	return nil
}

// choosed picks those of list that the user means.
func choosed(s *recordStore, list []Verified, refs []string) ([]Verified, error) {
	var chosen []Verified
	for _, ref := range refs {
		id := ""
		if rec, _, err := s.find(ref); err == nil {
			id = rec.String()
		} else {
			return nil, fmt.Errorf("verify %s: %w", ref, err)
		}
		for _, v := range list {
			if v.ID == id && !slices.ContainsFunc(chosen, func(o Verified) bool { return o.ID == id }) {
				chosen = append(chosen, v)
			}
		}
	}
	return chosen, nil
}

// verifyLayer says what is wrong with a layer, and marks it.
func verifyLayer(ctx context.Context, s *recordStore, id digest.Digest) ([]Damage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, err := readRecord[layerRecord](filepath.Join(s.layerDir(id), layerFile)); err != nil {
		return []Damage{{id.String(), err.Error()}}, nil
	}
	r, err := rebuildLayer(id, s.layerDir(id), false, nil)
	if err != nil {
		return []Damage{{id.String(), err.Error()}}, nil
	}
	bad := r.Bad
	if len(bad) == 0 && !r.Replaced && r.DiffID != id {
		bad = []badFile{{Name: recipeFile, Why: "the record of the layer's files has changed"}}
	}
	if len(bad) == 0 {
		return nil, s.unmark(id)
	}
	var list []Damage
	for _, b := range bad {
		list = append(list, Damage{id.String(), b.Name + ": " + b.Why})
	}
	return list, ignoreFull(s.mark(id, summary(bad)))
}

// repair puts a damaged image back from its registry: the damaged layers alone are
// fetched, and replaced. Pods that run keep the files they have until they are started
// anew. A name's record is put back if it can be told what it was, or else removed.
func repair(ctx context.Context, s *recordStore, v Verified, pull func(ctx context.Context, ref string, unnamed bool) (id string, err error)) error {
	if v.ID == "" {
		return mend(ctx, s, v.file, pull)
	}
	if v.file != "" { // or the pull would think that it is there
		if err := os.Remove(v.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, d := range v.Damage { // one whose recipe cannot be read has no mark yet
		id, ok := parseID(d.Layer)
		if !ok || !isDir(s.layerDir(id)) {
			continue
		}
		if err := s.mark(id, d.What); err != nil {
			return err
		}
	}
	errs := []error{report.New(report.Failure, "podrun image load FILE puts it back", "repair image %s: it has no name to pull it by", v.ID)}
	for i, top := range v.tops {
		if i == 0 {
			errs = nil
		}
		id, err := pull(ctx, top, true)
		if err == nil && id == v.ID {
			return repaired(ctx, s, v)
		}
		errs = append(errs, err)
	}
	return report.New(report.Failure, "podrun image load FILE puts it back without a registry", "repair image %s: %w", v.Name(), errors.Join(errs...))
}

func isDir(path string) bool {
	st, err := os.Lstat(path)
	return err == nil && st.IsDir()
}

// repaired looks whether an image is whole now.
func repaired(ctx context.Context, s *recordStore, v Verified) error {
	again, err := verify(ctx, s, []string{v.ID}, nil)
	if err != nil {
		return err
	}
	for _, a := range again {
		if len(a.Damage) > 0 {
			return report.New(report.Failure, "the disk may be failing: look at the kernel's log; or the layer's archive has files that replace one another, which cannot be verified",
				"repair image %s: it was fetched again, and is not whole still: %s", v.Name(), a.Damage[0])
		}
	}
	return nil
}
