package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/systemd"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/pod"
)

// imageUse knows what needs images: pods, what makes pods, units, and updates that may be
// rolled back. It looks when it is first asked, which is while no pod can be made: earlier
// one might be missed. In doubt everything is in use.
type imageUse struct {
	front  *front
	dirs   store.Dirs
	looked bool
	layers map[string]bool
	ids    map[string]bool
	names  map[string]bool
	err    error
}

func (f *front) imageUse(dirs store.Dirs) *imageUse {
	return &imageUse{front: f, dirs: dirs, layers: map[string]bool{}, ids: map[string]bool{}, names: map[string]bool{}}
}

// uses are for the image room.
func (u *imageUse) uses() image.Uses { return image.Uses{Layer: u.layer, Image: u.image} }

// layer says whether a pod uses a layer.
func (u *imageUse) layer(dir string) bool {
	u.look()
	return u.err != nil || u.layers[dir]
}

// image says whether an image is used, or may be.
func (u *imageUse) image(id string, names []string) bool {
	u.look()
	if u.err != nil || u.ids[id] {
		return true
	}
	for _, n := range names {
		if u.names[n] {
			return true
		}
	}
	return false
}

func (u *imageUse) look() {
	if u.looked {
		return
	}
	u.looked = true
	u.err = errors.Join(u.lookAtPods(), u.lookAtWorkloads(), u.lookAtUnits(), u.lookAtUpdates())
}

func (u *imageUse) lookAtPods() error {
	places, err := u.dirs.Pods()
	if err != nil {
		return err
	}
	for _, p := range places {
		if !p.Exists() {
			continue
		}
		plan, err := p.Plan()
		if err != nil {
			return err
		}
		for _, v := range plan.Volumes {
			u.mark("", "", v.Layers)
		}
		for _, list := range plan.All() {
			for _, c := range list {
				u.mark(c.ImageID, c.Image, c.Layers)
			}
		}
	}
	return nil
}

func (u *imageUse) mark(id, name string, layers []string) {
	u.ids[id] = true
	u.names[image.NormalizeName(name)] = true
	for _, layer := range layers {
		u.layers[layer] = true
	}
}

// lookAtWorkloads finds the images of pods that will be made.
func (u *imageUse) lookAtWorkloads() error {
	for _, kind := range pod.Workloads() {
		objects, err := u.dirs.Objects(kind, "")
		if err != nil {
			return err
		}
		for _, o := range objects {
			var spec any
			if err := json.Unmarshal(o.Spec, &spec); err != nil {
				return fmt.Errorf("read %s: %w", nameOf(o), err)
			}
			u.walk(spec)
		}
	}
	return nil
}

// walk marks the images of a template, wherever in a spec that is.
func (u *imageUse) walk(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			u.walk(e)
		}
	case map[string]any:
		for key, e := range v {
			if name, ok := e.(string); ok && (key == "image" || key == "reference") {
				u.mark(name, name, nil)
			}
			u.walk(e)
		}
	}
}

// lookAtUnits finds the images of units of podrun's, whether they run or not. A manifest
// that cannot be read now is no reason to keep everything: its unit cannot start either.
func (u *imageUse) lookAtUnits() error {
	dirs, err := ownUnits(u.front.getenv)
	if err != nil {
		return nil // nobody has units here
	}
	entries, err := os.ReadDir(dirs.units)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dirs.units, e.Name()))
		if err != nil || !systemd.IsGenerated(text) {
			continue
		}
		for _, file := range systemd.FilesOf(text) {
			text, err := os.ReadFile(file)
			if err != nil {
				continue
			}
			docs, err := load([]source{{name: file, data: text}})
			if err != nil {
				continue
			}
			for _, o := range append(docs.pods, samples(docs.workloads)...) {
				for _, i := range manifest.Images(o.Pod) {
					u.mark(i.Reference, i.Reference, nil)
				}
			}
		}
	}
	return nil
}

// lookAtUpdates finds the images that pods have had before, and may have again.
func (u *imageUse) lookAtUpdates() error {
	list, err := u.dirs.Updates()
	for _, last := range list {
		for _, i := range last.Images {
			u.mark(i.Old, i.Ref, nil)
			u.mark(i.New, i.Ref, nil)
		}
	}
	return err
}

// makeRoom frees unused images when the disk is too full, before something is added.
func (f *front) makeRoom(dirs store.Dirs, s interface {
	GarbageCollect(func() (image.Uses, error)) (image.Pruned, error)
}) error {
	gone, err := s.GarbageCollect(func() (image.Uses, error) {
		u := f.imageUse(dirs)
		u.look()
		return u.uses(), u.err
	})
	if len(gone.Images) > 0 {
		fmt.Fprintf(f.err, "podrun: the disk is nearly full: %d unused images removed, %s freed\n", len(gone.Images), size(gone.Bytes))
	}
	return err
}
