// Package imagegc finds the images in use, and removes unused ones when the disk is nearly full.
package imagegc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/progress"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/systemd"
)

// SharedEnv is set where the images belong to another podrun: on the nodes of podrun cluster.
const SharedEnv = "PODRUN_SHARED_IMAGES"

// InUse finds what uses images: pods, workloads, units, and updates and sets that may be rolled back. It reads
// them on first use: only then is it certain that no pod can be created meanwhile. After an error everything
// counts as used.
type InUse struct {
	env    *cmdutil.Env
	dirs   store.Dirs
	loaded bool
	layers map[string]bool // directories of layers
	ids    map[string]bool // ids of images
	names  map[string]bool // normalized names of images
	Err    error           // why not all uses are known
}

// NewInUse returns the images in use, which are read on first use.
func NewInUse(env *cmdutil.Env, dirs store.Dirs) *InUse {
	return &InUse{env: env, dirs: dirs, layers: map[string]bool{}, ids: map[string]bool{}, names: map[string]bool{}}
}

// Uses returns the callbacks for package image.
func (u *InUse) Uses() image.Uses { return image.Uses{Layer: u.Layer, Image: u.image} }

// Layer reports whether a pod uses, or may use, the layer with the directory dir.
func (u *InUse) Layer(dir string) bool {
	u.load()
	return u.Err != nil || u.layers[dir]
}

// image reports whether an image is used, or may be used.
func (u *InUse) image(id string, names []string) bool {
	u.load()
	if u.Err != nil || u.ids[id] {
		return true
	}
	for _, n := range names {
		if u.names[n] {
			return true
		}
	}
	return false
}

func (u *InUse) load() {
	if u.loaded {
		return
	}
	u.loaded = true
	u.Err = errors.Join(u.addPods(u.dirs, ""), u.addNodes(), u.addClusters(), u.addWorkloads(), u.addUnits(), u.addSets())
}

// addPods adds the images of the pods of dirs. images is the path by which they know the directory of images; "" if it is
// the user's.
func (u *InUse) addPods(dirs store.Dirs, images string) error {
	pods, err := dirs.Pods()
	if err != nil {
		return err
	}
	for _, p := range pods {
		if !p.Exists() {
			continue
		}
		plan, err := p.Plan()
		if err != nil {
			return err
		}
		for _, v := range plan.Volumes {
			u.mark("", "", u.ownPaths(v.Layers, images))
		}
		for _, list := range plan.All() {
			for _, c := range list {
				u.mark(c.ImageID, c.Image, u.ownPaths(c.Layers, images))
			}
		}
	}
	return nil
}

// ownPaths returns the paths of layers that are known by another path of the directory of images.
func (u *InUse) ownPaths(layers []string, images string) []string {
	if images == "" {
		return layers
	}
	var own []string
	for _, l := range layers {
		own = append(own, u.dirs.ImagesDir()+strings.TrimPrefix(l, images))
	}
	return own
}

// addNodes adds the images of the pods on the nodes of podrun cluster, which share the user's images. Each node has the
// data directory of root in a claim.
func (u *InUse) addNodes() error {
	claims, err := u.dirs.Objects(pod.KindClaim, "")
	if err != nil {
		return err
	}
	root := store.Dirs{Data: store.RootData}
	for _, c := range claims {
		if c.Labels[store.ClusterLabel] == "" {
			continue
		}
		dir, err := u.dirs.ClaimDir(c.Namespace, c.Name)
		if err != nil {
			return err
		}
		if err := u.addPods(store.Dirs{Data: dir, Runtime: dir}, root.ImagesDir()); err != nil {
			return err
		}
	}
	return nil
}

func (u *InUse) mark(id, name string, layers []string) {
	u.ids[id] = true
	u.names[image.NormalizeName(name)] = true
	for _, layer := range layers {
		u.layers[layer] = true
	}
}

// addWorkloads adds the images of pods that workloads will create.
func (u *InUse) addWorkloads() error {
	for _, kind := range pod.Workloads() {
		objects, err := u.dirs.Objects(kind, "")
		if err != nil {
			return err
		}
		for _, o := range objects {
			var spec any
			if err := json.Unmarshal(o.Spec, &spec); err != nil {
				return fmt.Errorf("read %s: %w", kindnames.Display(o), err)
			}
			u.walk(spec)
		}
	}
	return nil
}

// walk adds the images of templates anywhere in a spec.
func (u *InUse) walk(v any) {
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

// addUnits adds the images of podrun's units, running or not. It ignores manifests that cannot be read:
// their units cannot start either.
func (u *InUse) addUnits() error {
	dirs, err := systemd.OwnUnitDirs(u.env.Getenv)
	if err != nil {
		return nil // there is no directory of units
	}
	entries, err := os.ReadDir(dirs.Units)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dirs.Units, e.Name()))
		if err != nil || !systemd.IsGenerated(text) {
			continue
		}
		for _, file := range systemd.FilesOf(text) {
			u.addManifest(file)
		}
	}
	return nil
}

// addManifest adds the images of a manifest's pods, unless it cannot be read: nothing can start by it either then.
func (u *InUse) addManifest(file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		return
	}
	docs, err := resource.Load([]resource.Source{{Name: file, Data: text}})
	if err != nil {
		return
	}
	for _, o := range append(docs.Pods, resource.SamplePods(docs.Workloads)...) {
		for _, i := range manifest.Images(o.Pod) {
			u.mark(i.Reference, i.Reference, nil)
		}
	}
}

// addClusters adds the images of the clusters of podrun cluster, which may be stopped.
func (u *InUse) addClusters() error {
	files, err := filepath.Glob(filepath.Join(u.dirs.ClusterDir("*"), store.FileClusterPod))
	for _, file := range files {
		u.addManifest(file)
	}
	return err
}

// addSets adds the images of the versions of sets, and of pods before and after their updates: a set may go back to its
// former version, and a pod may be rolled back, and updated again.
func (u *InUse) addSets() error {
	sets, err1 := u.dirs.Sets()
	updates, err2 := u.dirs.UpdateSets()
	errs := []error{err1, err2}
	for _, name := range append(sets, updates...) {
		s, err := u.dirs.Set(name)
		if errs = append(errs, err); s == nil {
			continue
		}
		for _, id := range s.Images() {
			u.mark(id, id, nil)
		}
	}
	return errors.Join(errs...)
}

// Images removes images. uses is called only if something is to be removed.
type Images interface {
	GarbageCollect(uses func() (image.Uses, error)) (image.Pruned, error) // if the disk is too full
	RemoveUnused(uses func() (image.Uses, error)) (image.Pruned, error)   // that can be pulled again
}

// Collect removes unused images when the disk is too full, before something is added.
func Collect(env *cmdutil.Env, dirs store.Dirs, s Images) error {
	return remove(env, dirs, "the disk is nearly full", func(uses func() (image.Uses, error)) (image.Pruned, error) { return s.GarbageCollect(uses) })
}

// CollectAll removes all unused images that can be pulled again, for a node under disk pressure.
func CollectAll(env *cmdutil.Env, dirs store.Dirs, s Images) error {
	return remove(env, dirs, "the node has disk pressure", func(uses func() (image.Uses, error)) (image.Pruned, error) { return s.RemoveUnused(uses) })
}

func remove(env *cmdutil.Env, dirs store.Dirs, why string, collect func(func() (image.Uses, error)) (image.Pruned, error)) error {
	if env.Getenv(SharedEnv) != "" {
		return nil // others use images that this podrun does not know of
	}
	gone, err := collect(func() (image.Uses, error) {
		u := NewInUse(env, dirs)
		u.load()
		return u.Uses(), u.Err
	})
	if len(gone.Images) > 0 {
		fmt.Fprintf(env.ErrOut, "podrun: %s: %d unused images removed, %s freed\n", why, len(gone.Images), progress.Size(gone.Bytes))
	}
	return err
}
