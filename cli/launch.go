package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/manifest/podutil"
	"github.com/podrun/podrun/pod"
)

// launch brings the pods of one `podrun up` to life.
type launch struct {
	front         *front
	dirs          store.Dirs
	keeper        pods
	requireLimits bool
	pull          image.PullOptions
	pods          []*upPod
	fetches       fetches
	hold          io.Closer         // keeps the images' layers until the pods are recorded
	service       unitService       // nil unless systemd runs the pods
	replace       bool              // --replace
	waits         bool              // for a network or a registry that does not answer
	background    bool              // a puller waits for images of pods that do not run
	said          io.Writer         // hears what becomes of them
	stored        []manifest.Object // ConfigMaps and the like, for the pods to find
	workloads     []manifest.Object // Deployments, Jobs and the like
	samples       []*upPod          // pods that they would make: never started
	logLimited    bool              // --log-max-size or --log-max-files
	created       []*pod.Object     // of stored, those that were not there before
}

// unitService is what a unit of systemd does in another way than a terminal.
type unitService interface {
	// adopt takes over a pod that runs already.
	adopt(context.Context, *launch, *upPod) error
	// haveImages has the images of the pods on the machine, which wait meanwhile.
	haveImages(context.Context, *launch) (map[use]pod.Image, error)
}

// prepare does everything that can fail before a pod exists: it looks at what runs
// already, has the images ready and makes the plans.
func (l *launch) prepare(ctx context.Context) error {
	if err := l.look(ctx); err != nil {
		return err
	}
	found, err := l.haveImages(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range l.pods {
		if !p.running || p.change != nil {
			errs = append(errs, l.build(p, found))
		}
	}
	for _, p := range l.samples {
		errs = append(errs, l.build(p, found))
	}
	return errors.Join(append(errs, l.grow(errors.Join(errs...)))...)
}

// look looks at what runs already, and opens the ports of what does not.
func (l *launch) look(ctx context.Context) error {
	var errs []error
	for _, p := range l.pods {
		if err := l.fix(p); err != nil {
			return err
		}
		switch {
		case p.anew:
			p.replaces = p.place.Alive()
		case !p.place.Alive():
			errs = append(errs, l.recall(p))
		case l.service != nil:
			errs = append(errs, l.service.adopt(ctx, l, p))
		default:
			errs = append(errs, l.recognize(p))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, p := range l.pods {
		if !p.running {
			errs = append(errs, refuseEphemeral(p.object))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return l.openPorts()
}

// release lets go of the images' layers, and of ports.
func (l *launch) release() {
	for _, p := range l.pods {
		p.closePorts()
	}
	l.letGo()
}

func (l *launch) letGo() {
	if l.hold != nil {
		l.hold.Close()
		l.hold = nil
	}
}

// ensure has every image on the machine, all at once. The error tells of all that are not.
func (l *launch) ensure(ctx context.Context) (map[use]pod.Image, error) {
	uses := l.uses()
	byUse, failed, err := l.lookFor(ctx, uses, false)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, u := range uses {
		errs = append(errs, failed[u])
	}
	return byUse, errors.Join(append(errs, l.tellFailed())...)
}

// lookFor has images on the machine, all at once; with here no registry is asked. failed has
// those that are not.
func (l *launch) lookFor(ctx context.Context, uses []use, here bool) (byUse map[use]pod.Image, failed map[use]error, err error) {
	images, err := l.front.rooms.images(l.dirs)
	if err != nil {
		return nil, nil, err
	}
	if err := l.front.makeRoom(l.dirs, images); err != nil {
		return nil, nil, err
	}
	l.letGo()
	if l.hold, err = images.Lease(); err != nil {
		return nil, nil, err
	}
	shown := l.front.newProgress("fetching")
	defer shown.end()
	options := l.pull
	options.LocalOnly = here
	options.Progress = func(e image.Progress) {
		shown.tell(e)
		l.fetches.tell(e)
		l.eachPending(func(w *pendingPod) { w.layer(e) })
	}
	found, errs := make([]pod.Image, len(uses)), make([]error, len(uses))
	var all sync.WaitGroup
	for i, u := range uses {
		all.Go(func() {
			l.fetches.begin(u)
			found[i], errs[i] = l.have(ctx, images, u, options)
			l.fetches.end(u, errs[i])
			if errs[i] != nil {
				errs[i] = fmt.Errorf("cannot use image %s: %w", u.ref, errs[i])
				return
			}
			shown.done(u.ref)
			l.eachPending(func(w *pendingPod) { w.layer(image.Progress{Image: u.ref, Status: image.Done}) })
		})
	}
	all.Wait()
	byUse, failed = map[use]pod.Image{}, map[use]error{}
	for i, u := range uses {
		if byUse[u] = found[i]; errs[i] != nil {
			failed[u] = errs[i]
		}
	}
	return byUse, failed, nil
}

// have has one image on the machine. Pods that wait for it have an event of its pull.
func (l *launch) have(ctx context.Context, images images, u use, options image.PullOptions) (pod.Image, error) {
	options.AuthFiles = l.logins(u)
	options.BeforePull = func() { l.fetches.asked(u) }
	options.Warn = func(err error) { l.copied(u, err) }
	ref, policy := u.ref, u.policy
	if u.id != "" {
		ref, policy = u.id, image.Never
	}
	if !options.LocalOnly && slices.ContainsFunc(l.pods, func(p *upPod) bool { return p.waiting != nil }) {
		look := options
		look.LocalOnly = true
		if img, err := images.Ensure(ctx, ref, policy, look); !errors.Is(err, image.ErrRegistryNeeded) {
			return img, err
		}
		l.pulling(u)
	}
	return images.Ensure(ctx, ref, policy, options)
}

// uses are the images that the pods need, and how.
func (l *launch) uses() (uses []use) {
	for _, p := range slices.Concat(l.pods, l.samples) {
		for _, i := range manifest.Images(p.object.Pod) {
			if p.awaits || p.running && !p.changes(i.Container) {
				continue
			}
			if u := p.use(i); !slices.Contains(uses, u) {
				uses = append(uses, u)
			}
		}
	}
	return uses
}

// build makes the pod's plan.
func (l *launch) build(p *upPod, found map[use]pod.Image) error {
	images := map[string]pod.Image{}
	p.images = map[string]string{}
	for _, i := range manifest.Images(p.object.Pod) {
		img := found[p.use(i)]
		if p.awaits && img.ID == "" {
			img = standIn
		}
		images[i.Key()], p.images[i.Reference] = img, img.ID
	}
	opt, err := l.options()
	if err != nil {
		return err
	}
	if p.past != nil {
		opt.UID = p.past.uid
	}
	if opt.Seccomp, err = seccompProfiles(l.dirs.Seccomp(), podutil.LocalSeccompProfiles(p.object.Pod)); err != nil {
		return err
	}
	var plan *pod.Plan
	if p.change == nil {
		plan, err = manifest.Build(p.object, images, opt)
	} else {
		plan, err = manifest.Update(p.plan, p.change.old, p.object, p.change.Difference, images, opt)
	}
	if err == nil {
		err = l.front.suit(plan, p.object.Pod)
	}
	if err == nil {
		p.plan = plan
		p.plan.Awaits = p.awaits
	}
	return err
}

// start creates and starts the pods that are not running, and changes those that are
// and differ from their manifests. One that cannot be started keeps no other from it.
func (l *launch) start() error {
	defer l.release()
	defer l.front.foresight.end()
	changed, err := l.front.keep(l.dirs, l.stored, l.said)
	for _, o := range changed {
		if o.Revision == 1 {
			l.created = append(l.created, o)
		}
	}
	if l.front.tellPods(context.Background(), l.dirs, changed); err != nil {
		return err
	}
	if _, err := l.front.keep(l.dirs, l.workloads, l.said); err != nil {
		return err
	}
	errs := make([]error, len(l.pods))
	each(l.pods, func(i int, p *upPod) {
		if p.running {
			switch {
			case p.awaits:
				errs[i] = retryPull(p)
			case p.change != nil:
				errs[i] = l.apply(p)
				p.started = errs[i] == nil
			}
			return
		}
		if p.replaces && l.replace && !p.awaits {
			errs[i] = l.replacePod(p)
			p.started = errs[i] == nil
			return
		}
		if p.replaces {
			if errs[i] = l.stillPending(p); errs[i] != nil {
				return
			}
			if errs[i] = l.makeWay(p); errs[i] != nil {
				return
			}
		}
		start := l.startPod
		if p.awaits {
			start = l.startPull
		}
		switch err := l.begin(p, start); {
		case errors.Is(err, store.ErrLocked):
			errs[i] = busy(p.place)
			return
		case err != nil:
			errs[i] = fmt.Errorf("cannot start pod %s: %w", p.place.Name, err)
			return
		}
		p.started = true
		if p.replacement == "" { // it is what its latest manifest says
			errs[i] = l.dirs.RemoveReplacement(p.place)
		}
	})
	return errors.Join(errs...)
}

// started are the pods that run now.
func (l *launch) started() []*upPod {
	var list []*upPod
	for _, p := range l.pods {
		if p.started {
			list = append(list, p)
		}
	}
	return list
}

// startPod starts the processes of a pod whose images are here.
func (l *launch) startPod(p *upPod, lock *os.File, created time.Time) error {
	record := func() error { return l.record(p, created) }
	if err := l.open(p); err != nil { // again, if another pod of the name had them before
		return err
	}
	defer p.closePorts()
	if p.plan.Users != nil { // which ids the pod begins with is found as it is put on record
		if err := record(); err != nil {
			return err
		}
		record = nil
	}
	warning, err := l.keeper.start(p.place, p.plan, beginning{lock, p.ports, p.front, l.front.foresight.process(), record})
	if warning != "" {
		fmt.Fprintf(l.front.err, "podrun: pod %s: warning: %s\n", p.place.Name, warning)
	}
	return err
}

// begin has start start a pod in its place, which is locked. A pod that cannot be started is
// removed, unless it goes on from an earlier start.
func (l *launch) begin(p *upPod, start func(p *upPod, lock *os.File, created time.Time) error) (err error) {
	lock, err := l.lock(p)
	if err != nil {
		return err
	}
	defer lock.Close() // the pod's processes have it
	if err := l.withdrawn(p); err != nil {
		return err
	}
	if p.past != nil {
		return start(p, lock, p.past.created)
	}
	if err = start(p, lock, time.Now()); err != nil {
		err = errors.Join(err, l.keeper.remove(p.place))
	}
	return err
}

// lock locks a pod's place, in which there is nothing but what the pod goes on with.
func (l *launch) lock(p *upPod) (*os.File, error) {
	if p.lock != nil {
		return dup(p.lock)
	}
	if p.past == nil {
		return l.vacate(p.place)
	}
	lock, err := p.place.Lock()
	if err != nil {
		return nil, err
	}
	if plan, err := p.place.Plan(); err == nil && plan.UID == p.past.uid {
		return lock, nil
	}
	lock.Close() // it was removed meanwhile
	p.past = nil
	return l.vacate(p.place)
}
