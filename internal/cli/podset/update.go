package podset

import (
	"context"
	"errors"
	"strings"

	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
)

// podrun update changes a set of one pod, or of the pods of a unit. Its versions have the same manifests and different
// images; the names of the images are moved once the new ones are confirmed.

// title returns what is changed, for messages: set site, pod web, unit web.service.
func (t *Transaction) title() string {
	kind, name, ok := strings.Cut(t.Name, "/")
	if !ok {
		return "set " + t.Name
	}
	return kind + " " + name[strings.LastIndex(name, "/")+1:]
}

// Record returns the record of the set.
func (t *Transaction) Record() *store.Set { return t.record }

// Finish goes back to the current version if the last change was interrupted.
func (t *Transaction) Finish(ctx context.Context) error {
	if t.record.State == store.SetSettled {
		return nil
	}
	return t.finish(ctx)
}

// Images are the images of pods.
type Images struct {
	Pins    map[string]string // ids, by the references in the manifests
	Digests map[string]string // of the images in their registries, where they are known
}

// ChangeImages changes the images of running pods.
func (t *Transaction) ChangeImages(ctx context.Context, pods []*manifest.Object, from, to Images, result store.SetResult) error {
	current, err := versionOf(pods, from)
	if err != nil {
		return err
	}
	next, err := versionOf(pods, to)
	if err != nil {
		return err
	}
	if err := t.dirs.WriteSetManifests(t.Name, current.ID, current.text); err != nil {
		return err
	}
	t.record.Current = current.SetVersion
	return t.change(ctx, next, result)
}

// versionOf returns the version of pods with images.
func versionOf(pods []*manifest.Object, images Images) (*version, error) {
	var m manifests
	for _, o := range pods {
		text, err := manifest.Marshal(o.Pod)
		if err != nil {
			return nil, err
		}
		m.Files = append(m.Files, manifestFile{Name: "the stored manifest", Text: string(text)})
	}
	v, err := newVersion(&store.SetVersion{Pins: images.Pins, Digests: images.Digests}, m)
	if err != nil {
		return nil, err
	}
	v.Digest = "sha256:" + v.ID
	for _, o := range pods {
		v.docs.Pods = append(v.docs.Pods, *o)
		v.Members = append(v.Members, memberOf(o))
	}
	return v, nil
}

// preparePods is prepare for a version with the same manifests and other images.
func (t *Transaction) preparePods(ctx context.Context, v *version) (*run, error) {
	launcher, err := t.env.Deps.NewLauncher(t.dirs)
	if err != nil {
		return nil, err
	}
	r := &podup.Run{Env: t.env, Dirs: t.dirs, Launcher: launcher, Pull: t.env.Pull, ReportTo: t.env.ErrOut}
	for i := range v.docs.Pods {
		o := &v.docs.Pods[i]
		r.Targets = append(r.Targets, &podup.Target{Object: o, Pod: t.dirs.Pod(o.Pod.Namespace, o.Pod.Name), Recreate: true, Pinned: v.Pins})
	}
	next := &run{Run: r}
	if t.Restart != nil {
		return next, nil
	}
	if err := r.Prepare(ctx); err != nil {
		r.Release()
		return nil, err
	}
	return next, nil
}

// applyPods recreates the pods.
func (t *Transaction) applyPods(ctx context.Context, r *run) error {
	if t.Restart != nil {
		return t.Restart(ctx)
	}
	return r.Start()
}

// runs reports whether all pods of an update run with the images of a version.
func (t *Transaction) runs(v *version) bool {
	if v.Pins == nil || t.Restart != nil {
		return false
	}
	for i := range v.docs.Pods {
		p := t.dirs.Pod(v.docs.Pods[i].Pod.Namespace, v.docs.Pods[i].Pod.Name)
		images := RunningImages(p)
		for ref, id := range images {
			if want := v.Pins[ref]; want != "" && want != id {
				return false
			}
		}
		if !p.Alive() || len(images) == 0 {
			return false
		}
	}
	return true
}

// RunningImages returns the ids of the images with which a pod was started, by their references.
func RunningImages(p store.Pod) map[string]string {
	ids := map[string]string{}
	plan, err := p.Plan()
	if err != nil {
		return ids
	}
	for _, list := range [][]pod.Container{plan.InitContainers, plan.Containers} {
		for _, c := range list {
			ids[c.Image] = c.ImageID
		}
	}
	return ids
}

// retag moves the names of images, and records that it is done.
func (t *Transaction) retag() error {
	if len(t.record.Retag) == 0 {
		return nil
	}
	var errs []error
	for ref, id := range t.record.Retag {
		name := ref
		if img, err := t.images.Resolve(ref); err == nil {
			if img.ID == id {
				continue
			}
			name = img.Name // the full name for a short one
		}
		errs = append(errs, t.images.Tag(id, name))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	t.record.Retag = nil
	return t.dirs.WriteSet(t.Name, t.record)
}
