package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// RemoveOptions say what else needs images.
type RemoveOptions struct {
	// InUse says whether a pod uses a layer (one of pod.Image.Layers). Such layers
	// stay, and a later Remove frees them. nil means that no pod does.
	InUse func(layerDir string) bool
}

// Remove takes a name away, and with its last name the image; or an image with its
// only name, by its id or an unambiguous beginning of at least four digits of it.
// Layers that neither an image nor a pod uses any more are freed, also those that
// earlier Removes had to leave, unless somebody is adding or using images at this
// moment: then they stay until the next Remove.
func (s *Store) Remove(nameOrID string, o RemoveOptions) error {
	err := s.removeRecords(nameOrID)
	if err != nil {
		return fmt.Errorf("remove image %s: %w", nameOrID, err)
	}
	if _, err := s.free(o.InUse); err != nil {
		return fmt.Errorf("free layers of image %s: %w", nameOrID, err)
	}
	return nil
}

func (s *Store) removeRecords(nameOrID string) error {
	lock, err := s.lockRecords()
	if err != nil {
		return err
	}
	defer lock.Close()
	names, damage := s.names()
	id, name, err := s.target(nameOrID, names)
	if err != nil {
		return errors.Join(err, damage)
	}
	var others []string
	for _, n := range names {
		if n.ID == id && n.Name != name {
			others = append(others, n.Name)
		}
	}
	slices.Sort(others)
	switch {
	case name == "" && len(others) > 1:
		return report.New(report.Usage, "remove its names one by one", "it has several names: %s", strings.Join(others, ", "))
	case name == "" && len(others) == 1:
		name, others = others[0], nil
	}
	var files []string
	if name != "" {
		files = append(files, s.nameFile(name))
	}
	if len(others) == 0 {
		files = append(files, s.imageFile(id))
	}
	return s.unrecord(files...)
}

// unrecord removes files of names and images, which the caller has locked, in this order. They
// have durably gone before layers go: what is listed after a power cut is whole.
func (s *Store) unrecord(files ...string) error {
	for _, file := range files {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return errors.Join(store.SyncDir(filepath.Join(s.dir, namesDir)), store.SyncDir(filepath.Join(s.dir, imagesDir)))
}

// find is target for who has not read the names.
func (s *Store) find(nameOrID string) (id digest.Digest, name string, err error) {
	names, damage := s.names()
	id, name, err = s.target(nameOrID, names)
	if err != nil {
		err = errors.Join(err, damage)
	}
	return id, name, err
}

// target finds what the user means: the image's id, and its name if it was named.
func (s *Store) target(nameOrID string, names []*nameRecord) (id digest.Digest, name string, err error) {
	ref, refErr := parseName(nameOrID)
	if refErr == nil {
		i := slices.IndexFunc(names, func(n *nameRecord) bool { return n.Name == ref.String() })
		if i >= 0 {
			id, name = names[i].ID, names[i].Name
		}
	}
	hex, ok := idBeginning(nameOrID)
	if !ok {
		switch {
		case refErr != nil:
			return "", "", refErr
		case name == "":
			return "", "", unknown()
		}
		return id, name, nil
	}
	entries, err := os.ReadDir(filepath.Join(s.dir, imagesDir))
	if err != nil {
		return "", "", err
	}
	found := 0
	if name != "" {
		found++
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), hex) && len(e.Name()) == 64+len(".json") {
			id = digest.NewDigestFromEncoded(digest.SHA256, e.Name()[:64])
			found++
		}
	}
	switch found {
	case 0:
		return "", "", unknown()
	case 1:
		return id, name, nil
	}
	return "", "", report.New(report.Usage, "podrun image ls shows names and ids in full", "%q is ambiguous: %d images match", nameOrID, found)
}

// free removes the layers that nobody needs, if nobody is adding or using images, and says
// how many bytes their files have had.
func (s *Store) free(inUse func(string) bool) (int64, error) {
	lock, err := s.lock()
	if err != nil {
		return 0, err
	}
	defer lock.Close()
	if alone, err := lock.TryExclusive(); err != nil || !alone {
		return 0, err
	}
	rubbish, err := s.rubbish()
	if err != nil {
		return 0, err
	}
	unused, err := s.unusedLayers(inUse)
	if err != nil {
		return 0, err
	}
	retired, err := s.retired(inUse)
	if err != nil {
		return 0, err
	}
	rubbish = append(rubbish, retired...)
	var freed int64
	for _, layer := range unused {
		if rec, err := readRecord[layerRecord](filepath.Join(layer, layerFile)); err == nil {
			freed += rec.Bytes
		}
		gone, err := s.discard(layer)
		if err != nil {
			return 0, err
		}
		rubbish = append(rubbish, gone)
	}
	if err := lock.Shared(); err != nil {
		return 0, err
	}
	return freed, s.removeTrees(rubbish)
}

// unusedLayers lists layers' directories that no image and no pod needs. If any
// image cannot be read nothing can be said of its layers, so none is listed.
func (s *Store) unusedLayers(inUse func(string) bool) ([]string, error) {
	images, err := s.images()
	if err != nil {
		return nil, err
	}
	needed := map[string]bool{}
	for _, rec := range images {
		for _, id := range rec.DiffIDs {
			needed[id.Encoded()] = true
		}
	}
	entries, err := os.ReadDir(filepath.Join(s.dir, layersDir))
	if err != nil {
		return nil, err
	}
	var unused []string
	for _, e := range entries {
		dir := filepath.Join(s.dir, layersDir, e.Name())
		if !needed[e.Name()] && (inUse == nil || !inUse(filepath.Join(dir, layerFS))) {
			unused = append(unused, dir)
		}
	}
	return unused, nil
}
