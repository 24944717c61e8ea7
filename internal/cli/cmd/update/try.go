package update

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/progress"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/systemd"
)

// findChanges finds the images of a pod that have changed.
func (u *updater) findChanges(ctx context.Context, p *updatedPod) error {
	if p.record != nil {
		if err := u.finishTagging(p); err != nil {
			return err
		}
	}
	switch {
	case p.stale: // it is restored with its old images
		return nil
	case u.rollback:
		return u.findOldImages(p)
	}
	running := runningImages(p.pod)
	var failures []string
	for _, i := range manifest.Images(p.object.Pod) {
		unwanted := u.auto && podutil.AutoUpdatePolicy(p.object.Pod, i.Container) == ""
		if slices.Contains(failures, i.Reference) || image.IsPinned(i.Reference) || unwanted {
			continue
		}
		failures = append(failures, i.Reference)
		named, _ := u.store.Resolve(i.Reference) // fails if the running image has lost its name
		newest, err := u.newest(ctx, p, i)
		switch {
		case err != nil:
			return err
		case newest.rejected || !u.retry && p.record.Rejected(i.Reference, newest.id, ""):
			p.rejected = append(p.rejected, i.Reference)
			continue
		}
		old := running[i.Reference]
		if old == newest.id || old == "" {
			old = named.ID
		}
		if old != newest.id && old != "" {
			p.images = append(p.images, imageChange{ref: i.Reference, from: old, to: newest.id, digest: newest.digest})
		}
	}
	return nil
}

// finishTagging finishes an earlier update that was interrupted after its result was recorded.
func (u *updater) finishTagging(p *updatedPod) error {
	end := map[store.UpdateState]store.UpdateState{store.UpdateTagging: store.UpdateDone, store.UpdateUntagging: store.UpdateUndone}
	state, ok := end[p.record.State]
	if !ok {
		return nil
	}
	if err := u.tag(p.record.Images, state == store.UpdateDone); err != nil {
		return err
	}
	p.record.State = state
	return u.dirs.WriteUpdate(p.pod, p.record)
}

// findOldImages finds the images before the last update.
func (u *updater) findOldImages(p *updatedPod) error {
	switch {
	case p.record == nil:
		return report.New(report.Failure, "podrun image ls shows what is on this machine; the manifest may name another tag", "no earlier images are recorded")
	case p.record.State == store.UpdateUndone:
		return report.New(report.Failure, "podrun update "+p.pod.Name+" uses the newest images", "it is already rolled back")
	}
	running := runningImages(p.pod)
	for _, i := range p.record.Images {
		if p.record.State == store.UpdateTrying && running[i.Ref] != i.New { // it was interrupted before
			continue
		}
		if _, err := u.store.Resolve(i.Old); err != nil {
			return report.New(report.Failure, "load or pull it again; podrun image ls shows what is here", "the image %s had before: %w", i.Ref, err)
		}
		p.images = append(p.images, imageChange{ref: i.Ref, from: i.New, to: i.Old, digest: i.Digest})
	}
	return nil
}

// newestImage is the image for which a name stands now.
type newestImage struct {
	id       string
	digest   string // in the registry; "": unknown
	rejected bool   // the pod is not to be updated to it, and it was not pulled
}

// newest returns the image for which a name stands now: in its registry or, for an image from an archive, on this
// machine. It asks a registry once for each name, and pulls only what is not on this machine.
func (u *updater) newest(ctx context.Context, p *updatedPod, i manifest.ImageUse) (newestImage, error) {
	local := u.pullWord == "never" || i.PullPolicy == image.Never || u.auto && podutil.AutoUpdatePolicy(p.object.Pod, i.Container) == podutil.AutoUpdateLocal
	if local || !u.store.FromRegistry(i.Reference) {
		img, err := u.store.Resolve(i.Reference)
		return newestImage{id: img.ID}, err
	}
	l := &podup.Run{Env: u.env, Dirs: u.dirs}
	o := u.pull
	o.AuthTexts = l.Logins((&podup.Target{Object: p.object}).ImageRequest(i))
	o.NoName = true
	shown := progress.New(u.env, "fetching")
	defer shown.End()
	o.Progress = shown.Update
	shown.Wait("checking %s", i.Reference)
	newest, asked := u.asked[i.Reference]
	var err error
	if !asked {
		var img pod.Image
		newest.digest, img, err = u.store.Head(ctx, i.Reference, o)
		newest.id = img.ID
		if err != nil && !image.IsTransient(err) { // not every registry answers HEAD
			err = nil
		}
	}
	newest.rejected = !u.retry && p.record.Rejected(i.Reference, "", newest.digest)
	if err == nil && newest.id == "" && !newest.rejected {
		var img pod.Image
		img, err = u.store.Pull(ctx, i.Reference, o)
		newest.id = img.ID
	}
	switch {
	case err == nil:
		u.asked[i.Reference] = newest
		shown.Done(i.Reference)
	case report.Hint(err) == "" && image.IsTransient(err):
		err = report.New(report.Failure, "the pod keeps running; try again later, or use the images on this machine: podrun update --pull never "+p.pod.Name, "%w", err)
	}
	return newest, err
}

// runningImages returns the image IDs of a pod, by reference.
func runningImages(p store.Pod) map[string]string {
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

// try recreates the pods with their new images, and with the old ones if the new ones fail.
func (u *updater) try(ctx context.Context, g *updateGroup) error {
	for _, p := range g.pods {
		if len(p.images) == 0 && !p.stale {
			continue
		}
		if g.unit == "" {
			var err error
			if p.manifest, err = manifest.Marshal(p.object.Pod); err != nil {
				return err
			}
		}
		r := &store.Update{State: store.UpdateTrying, Boot: store.BootID(), At: time.Now().UTC(), Images: forRecord(p.images, false), Manifest: p.manifest}
		if err := u.dirs.WriteUpdate(p.pod, r); err != nil {
			return err
		}
	}
	err := u.replace(ctx, g, true)
	if err == nil {
		err = u.watch(ctx, g, u.stable)
	}
	if err != nil {
		return u.undo(context.WithoutCancel(ctx), g, err)
	}
	for _, p := range g.pods {
		word := "updated"
		state, tagging := store.UpdateDone, store.UpdateTagging
		if u.rollback {
			word, state, tagging = "rolled back", store.UpdateUndone, store.UpdateUntagging
		}
		if p.stale {
			word = "created again: its last update was interrupted"
		}
		p.manifest = nil
		if err := u.end(p, forRecord(p.images, u.rollback), tagging, state); err != nil {
			return err
		}
		fmt.Fprintf(u.env.Out, "pod/%s %s\n", p.pod.Name, word)
		for _, i := range p.images {
			fmt.Fprintf(u.env.ErrOut, "podrun: pod %s: %s: %.19s -> %.19s\n", p.pod.Name, report.Escape(i.ref), i.from, i.to)
		}
	}
	return nil
}

// imageChange is the change of one image by this command: of an update from the older to the newer image,
// of a rollback from the newer to the older one. ref is the reference in the manifest, the others are ids.
type imageChange struct {
	ref, from, to string
	digest        string // of the newer image in its registry
}

// forRecord returns the changes for the record of an update: from is Old and to is New or, if they are
// reversed, the other way round.
func forRecord(changes []imageChange, reversed bool) []store.UpdatedImage {
	var list []store.UpdatedImage
	for _, c := range changes {
		if reversed {
			c.from, c.to = c.to, c.from
		}
		list = append(list, store.UpdatedImage{Ref: c.ref, Old: c.from, New: c.to, Digest: c.digest})
	}
	return list
}

// end records the result of an update, and moves the names of images. The first record decides the
// result: after a power failure finishTagging does the rest.
func (u *updater) end(p *updatedPod, images []store.UpdatedImage, tagging, state store.UpdateState) error {
	if len(images) == 0 {
		if p.stale || p.record == nil {
			return u.dirs.RemoveUpdate(p.pod)
		}
		return nil
	}
	r := &store.Update{State: tagging, Boot: store.BootID(), At: time.Now().UTC(), Images: images, Manifest: p.manifest}
	if err := u.dirs.WriteUpdate(p.pod, r); err != nil {
		return err
	}
	if err := u.tag(images, state == store.UpdateDone); err != nil {
		return err
	}
	r.State = state
	return u.dirs.WriteUpdate(p.pod, r)
}

// tag moves names to the new or to the old images.
func (u *updater) tag(images []store.UpdatedImage, forward bool) error {
	var errs []error
	for _, i := range images {
		id := i.Old
		if forward {
			id = i.New
		}
		name := i.Ref
		if img, err := u.store.Resolve(i.Ref); err == nil {
			if img.ID == id {
				continue
			}
			name = img.Name // the full name for a short one
		}
		errs = append(errs, u.store.Tag(id, name))
	}
	return errors.Join(errs...)
}

// replace recreates the pods with the images that they are to have or, if not forward, with those that they
// had.
func (u *updater) replace(ctx context.Context, g *updateGroup, forward bool) error {
	if g.unit != "" {
		within, cancel := context.WithTimeout(ctx, u.timeout)
		defer cancel()
		manager, err := systemd.ConnectOwn(within)
		if err != nil {
			return err
		}
		defer manager.Close()
		fmt.Fprintf(u.env.ErrOut, "podrun: restarting %s\n", g.unit)
		err = errors.Join(manager.ResetFailed(within, g.unit), manager.Restart(within, g.unit))
		if end, _ := within.Deadline(); err != nil && !time.Now().Before(end) && ctx.Err() == nil {
			return fmt.Errorf("%s is not ready after %v", g.unit, u.timeout)
		}
		return err
	}
	l := &podup.Run{Env: u.env, Dirs: u.dirs, Launcher: u.launcher, Pull: u.pull, ReportTo: u.env.ErrOut}
	for _, p := range g.pods {
		fixed := map[string]string{}
		for _, i := range p.images {
			fixed[i.ref] = i.from
			if forward {
				fixed[i.ref] = i.to
			}
		}
		l.Targets = append(l.Targets, &podup.Target{Object: p.object, Pod: p.pod, Recreate: true, Pinned: fixed})
	}
	defer l.Release()
	if err := l.Prepare(ctx); err != nil {
		return err
	}
	return l.Start()
}
