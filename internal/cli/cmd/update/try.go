package update

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/progress"
	"github.com/podrun/podrun/internal/cli/podset"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/systemd"
)

// imageChange is the change of one image. ref is the reference in the manifest, the others are ids.
type imageChange struct {
	ref, from, to string
	digest        string // of the newer image in its registry
}

// findChanges finds the images of a pod that have changed.
func (u *updater) findChanges(ctx context.Context, p *updatedPod, record *store.Set) error {
	if u.rollback {
		return u.findOldImages(p, record)
	}
	running := podset.RunningImages(p.pod)
	var done []string
	for _, i := range manifest.Images(p.object.Pod) {
		unwanted := u.auto && podutil.AutoUpdatePolicy(p.object.Pod, i.Container) == ""
		if slices.Contains(done, i.Reference) || image.IsPinned(i.Reference) || unwanted {
			continue
		}
		done = append(done, i.Reference)
		named, _ := u.store.Resolve(i.Reference) // fails if the running image has lost its name
		newest, err := u.newest(ctx, p, i, record)
		switch {
		case err != nil:
			return err
		case newest.rejected || !u.retry && record.RejectOf(newest.id, i.Reference) != nil:
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

// findOldImages finds the images before the last update.
func (u *updater) findOldImages(p *updatedPod, record *store.Set) (err error) {
	if p.images, err = imagesBefore(p.pod.Name, record, podset.RunningImages(p.pod)); err != nil {
		return err
	}
	for _, i := range p.images {
		if _, err := u.store.Resolve(i.to); err != nil {
			return report.New(report.Failure, "load or pull it again; podrun image ls shows what is here", "the image %s had before: %w", i.ref, err)
		}
	}
	return nil
}

// imagesBefore returns the changes that roll a pod back. running are the ids of its images, by their references; the record
// may have images of other pods of its unit.
func imagesBefore(pod string, record *store.Set, running map[string]string) (changes []imageChange, err error) {
	switch {
	case record.HasGoneBack():
		return nil, report.New(report.Failure, "podrun update "+pod+" uses the newest images", "it is already rolled back")
	case record.Former == nil:
		return nil, report.New(report.Failure, "podrun image ls shows what is on this machine; the manifest may name another tag", "no earlier images are recorded")
	}
	for ref, old := range record.Former.Pins {
		if newer := record.Current.Pins[ref]; running[ref] != "" && newer != old {
			changes = append(changes, imageChange{ref: ref, from: newer, to: old, digest: record.Former.Digests[ref]})
		}
	}
	return changes, nil
}

// newestImage is the image for which a name stands now.
type newestImage struct {
	id       string
	digest   string // in the registry; "": unknown
	rejected bool   // the pod is not to be updated to it, and it was not pulled
}

// newest returns the image for which a name stands now: in its registry or, for an image from an archive, on this
// machine. It asks a registry once for each name, and pulls only what is not on this machine.
func (u *updater) newest(ctx context.Context, p *updatedPod, i manifest.ImageUse, record *store.Set) (newestImage, error) {
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
	newest.rejected = !u.retry && record.RejectOf(newest.digest, i.Reference) != nil
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

// try recreates the pods with their new images, and with the old ones if the new ones fail.
func (u *updater) try(ctx context.Context, t *podset.Transaction, g *updateGroup) error {
	from, to := podset.Images{Pins: map[string]string{}, Digests: map[string]string{}}, podset.Images{}
	var objects []*manifest.Object
	for _, p := range g.pods {
		objects = append(objects, p.object)
		maps.Copy(from.Pins, podset.RunningImages(p.pod))
	}
	if current := t.Record().Current; current != nil {
		maps.Copy(from.Digests, current.Digests)
	}
	to.Pins, to.Digests = maps.Clone(from.Pins), maps.Clone(from.Digests)
	for _, p := range g.pods {
		for _, i := range p.images {
			from.Pins[i.ref], to.Pins[i.ref], to.Digests[i.ref] = i.from, i.to, i.digest
		}
	}
	word, result := "updated", store.SetApplied
	if u.rollback {
		word, result = "rolled back", store.SetRolledBack
	}
	if err := t.ChangeImages(ctx, objects, from, to, result); err != nil {
		return u.explain(err, g)
	}
	for _, p := range g.pods {
		fmt.Fprintf(u.env.Out, "pod/%s %s\n", p.pod.Name, word)
		for _, i := range p.images {
			fmt.Fprintf(u.env.ErrOut, "podrun: pod %s: %s: %.19s -> %.19s\n", p.pod.Name, report.Escape(i.ref), i.from, i.to)
		}
	}
	return nil
}

// explain returns the error of an update with what the user can do.
func (u *updater) explain(err error, g *updateGroup) error {
	var back *podset.WentBack
	if !errors.As(err, &back) {
		return err
	}
	name := g.pods[0].pod.Name
	again := "podrun update " + name
	if u.rollback {
		again += " --rollback"
	}
	return report.New(report.Failure, "podrun logs -f "+name+" in another terminal shows output of the new images until their pod is removed; "+again+" tries again", "%w: the pod was rolled back to its former images", back.Cause)
}

// restart restarts a unit.
func (u *updater) restart(ctx context.Context, unit string) error {
	manager, err := systemd.ConnectOwn(ctx)
	if err != nil {
		return err
	}
	defer manager.Close()
	fmt.Fprintf(u.env.ErrOut, "podrun: restarting %s\n", unit)
	err = errors.Join(manager.ResetFailed(ctx, unit), manager.Restart(ctx, unit))
	if end, ok := ctx.Deadline(); ok && err != nil && !time.Now().Before(end) {
		return fmt.Errorf("%s is not ready in time", unit)
	}
	return err
}
