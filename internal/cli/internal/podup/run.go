// Package podup starts the pods of manifests, or changes running ones. It compares them with what runs,
// pulls the images, makes and records the Plans, and starts the processes.
package podup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/admission"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/imagegc"
	"github.com/podrun/podrun/internal/cli/internal/objects"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/progress"
	"github.com/podrun/podrun/internal/cli/internal/pull"
	"github.com/podrun/podrun/internal/cli/internal/upplan"
	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/compose/api"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// Run is one run of `podrun up`: its manifests, options and pods.
type Run struct {
	Env           *cmdutil.Env
	Dirs          store.Dirs
	Launcher      cmdutil.PodLauncher
	Preparation   *cmdutil.Preparation // nil if none was started
	RequireLimits bool
	Pull          image.PullOptions
	Targets       []*Target
	pulls         pull.Record
	pullRequests  chan<- struct{}     // receives requests for an attempt to pull now
	lease         io.Closer           // protects the images' layers until the pods are recorded
	Unit          Unit                // nil unless systemd runs the pods
	Replace       bool                // --replace
	Independent   bool                // a pod that cannot be started does not hold up the others
	RetryPulls    bool                // when a network or a registry does not answer
	Background    bool                // pods that do not run get a puller for their images
	ReportTo      io.Writer           // receives the outcome of each pod
	Stored        []manifest.Object   // ConfigMaps and other objects that pods refer to
	Workloads     []manifest.Object   // Deployments, Jobs and other workloads
	Leaving       []store.Pod         // pods that are removed before the others start: their ports are free then
	Samples       []*Target           // one pod of each workload, for its images; never started
	LogLimited    bool                // --log-max-size or --log-max-files
	removeAtEnd   bool                // the pods remove themselves when they have ended
	allocatable   corev1.ResourceList // see Options
	created       []*pod.Object       // the objects of Stored that did not exist before
	linesShown    sync.Map            // the pods of which an error has the last output
	refused       []error             // why pods of an independent run are not started
}

// Unit is what a systemd unit does differently from a terminal.
type Unit interface {
	// Owns reports whether the unit has made a pod.
	Owns(store.Pod) bool
	// TakeOver makes a running pod a pod of the unit. If the pod has ended meanwhile, it is created.
	TakeOver(context.Context, *Target) error
	// PullFailed reports a failed attempt to pull the pods' images.
	PullFailed(err error, next time.Duration)
	// AcquireStartSlot waits until the unit may start its pods.
	AcquireStartSlot(context.Context) error
	// ShuttingDown reports whether the machine is shutting down.
	ShuttingDown(context.Context) bool
	// ReleaseStartSlot lets another unit start its pods.
	ReleaseStartSlot()
}

// Prepare does everything that can fail before a pod exists: it inspects what runs, pulls the images and
// makes the Plans.
func (r *Run) Prepare(ctx context.Context) error {
	if err := r.inspect(ctx); err != nil {
		return err
	}
	found, err := r.pullAllImages(ctx)
	if err != nil {
		return err
	}
	targetErrs := make([]error, len(r.Targets))
	for i, p := range r.Targets {
		if p.Action != upplan.Keep {
			targetErrs[i] = r.Build(p, found)
		}
	}
	errs := []error{r.dropFailed(targetErrs)}
	for _, p := range r.Samples {
		errs = append(errs, r.Build(p, found))
	}
	return errors.Join(append(errs, r.buildEphemeral(errors.Join(errs...)))...)
}

// dropFailed returns the errors of the targets. An independent run goes on without the failed targets if any other
// remains, and returns their errors after the start, as kubectl apply does.
func (r *Run) dropFailed(errs []error) error {
	var good []*Target
	var refused []error
	for i, p := range r.Targets {
		if errs[i] == nil {
			good = append(good, p)
			continue
		}
		format := "pod %s is not started: %w"
		if strings.HasPrefix(errs[i].Error(), "pod "+p.Pod.Name+" ") {
			format = "%.0s%w" // the error names it
		}
		refused = append(refused, report.New(report.Failure, report.Hint(errs[i]), format, p.Pod.Name, errs[i]))
	}
	if len(refused) == 0 || !r.Independent || len(good)+len(r.Workloads) == 0 {
		return errors.Join(errs...)
	}
	for i, p := range r.Targets {
		if errs[i] != nil {
			p.closePorts()
		}
	}
	r.Targets, r.refused = good, append(r.refused, refused...)
	return nil
}

// inspect compares every pod with what runs, and opens the ports of the pods that do not run.
func (r *Run) inspect(ctx context.Context) error {
	for _, check := range []func() []error{
		func() []error { return r.eachTarget(func(p *Target) error { return r.chooseStep(ctx, p) }) },
		r.refuseVolumes,
	} {
		if err := r.dropFailed(check()); err != nil {
			return err
		}
	}
	if err := errors.Join(r.refuseSampleVolumes(), r.refuseSharedPorts()); err != nil {
		return err
	}
	return r.dropFailed(r.openPorts())
}

// eachTarget returns the result of do for each target.
func (r *Run) eachTarget(do func(p *Target) error) []error {
	errs := make([]error, len(r.Targets))
	for i, p := range r.Targets {
		errs[i] = do(p)
	}
	return errs
}

// Release releases the lease on the images' layers, and the ports.
func (r *Run) Release() {
	for _, p := range r.Targets {
		p.closePorts()
	}
	r.ReleaseLease()
}

// ReleaseLease allows the removal of the images' layers again.
func (r *Run) ReleaseLease() {
	if r.lease != nil {
		r.lease.Close()
		r.lease = nil
	}
}

// Ensure pulls all images that are not present, concurrently. The error joins all failures.
func (r *Run) Ensure(ctx context.Context) (map[pull.Request]pod.Image, error) {
	requests := r.imageRequests()
	byRequest, failed, err := r.pullImages(ctx, requests, false)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, u := range requests {
		errs = append(errs, failed[u])
	}
	return byRequest, errors.Join(append(errs, r.recordFailedPulls())...)
}

// pullImages makes images available, concurrently; with localOnly it contacts no registry. failed has the errors of
// the images that are not available.
func (r *Run) pullImages(ctx context.Context, requests []pull.Request, localOnly bool) (byRequest map[pull.Request]pod.Image, failed map[pull.Request]error, err error) {
	images, err := r.Env.Deps.OpenImages(r.Dirs)
	if err != nil {
		return nil, nil, err
	}
	if err := imagegc.Collect(r.Env, r.Dirs, images); err != nil {
		return nil, nil, err
	}
	r.ReleaseLease()
	if r.lease, err = images.Lease(); err != nil {
		return nil, nil, err
	}
	shown := progress.New(r.Env, "fetching")
	defer shown.End()
	options := r.Pull
	options.LocalOnly = localOnly
	options.Progress = func(e image.Progress) {
		shown.Update(e)
		r.pulls.Update(e)
		r.EachPending(func(w *pull.Pending) { w.Layer(e) })
	}
	found, errs := make([]pod.Image, len(requests)), make([]error, len(requests))
	var all sync.WaitGroup
	for i, u := range requests {
		all.Go(func() {
			r.pulls.Begin(u)
			found[i], errs[i] = r.ensureImage(ctx, images, u, options)
			r.pulls.End(u, errs[i])
			if errs[i] != nil {
				errs[i] = fmt.Errorf("cannot use image %s: %w", u.Ref, errs[i])
				return
			}
			shown.Done(u.Ref)
			r.EachPending(func(w *pull.Pending) { w.Layer(image.Progress{Image: u.Ref, Status: image.Done}) })
		})
	}
	all.Wait()
	byRequest, failed = map[pull.Request]pod.Image{}, map[pull.Request]error{}
	for i, u := range requests {
		if byRequest[u] = found[i]; errs[i] != nil {
			failed[u] = errs[i]
		}
	}
	return byRequest, failed, nil
}

// ensureImage makes one image available. Pods that wait for it get an event of its pull.
func (r *Run) ensureImage(ctx context.Context, images cmdutil.ImageStore, u pull.Request, options image.PullOptions) (pod.Image, error) {
	options.AuthTexts = r.Logins(u)
	options.BeforePull = func() { r.pulls.NotePull(u) }
	options.Warn = func(err error) { r.noteLocalCopy(u, err) }
	ref, policy := u.Ref, u.Policy
	if u.ID != "" {
		ref, policy = u.ID, image.Never
	}
	if !options.LocalOnly && r.isPuller() {
		local := options
		local.LocalOnly = true
		if img, err := images.Ensure(ctx, ref, policy, local); !errors.Is(err, image.ErrRegistryNeeded) {
			return img, err
		}
		r.pulling(u)
	}
	return images.Ensure(ctx, ref, policy, options)
}

// imageRequests returns the images that the pods need, and how they use them.
func (r *Run) imageRequests() (requests []pull.Request) {
	for _, p := range slices.Concat(r.Targets, r.Samples) {
		for _, i := range manifest.Images(p.Object.Pod) {
			if p.AwaitsImages || p.RanBefore() && !p.changes(i.Container) {
				continue
			}
			if u := p.ImageRequest(i); !slices.Contains(requests, u) {
				requests = append(requests, u)
			}
		}
	}
	return requests
}

// Build makes the pod's Plan.
func (r *Run) Build(p *Target, found map[pull.Request]pod.Image) error {
	images := map[string]pod.Image{}
	p.images = map[string]string{}
	for _, i := range manifest.Images(p.Object.Pod) {
		img := found[p.ImageRequest(i)]
		if p.AwaitsImages && img.ID == "" {
			img = placeholderImage
		}
		images[i.Key()], p.images[i.Reference] = img, img.ID
	}
	opt, err := r.options()
	if err != nil {
		return err
	}
	if p.Cluster != nil { // the node may have another name than its machine
		opt.NodeName = cmp.Or(p.Object.Pod.Spec.NodeName, opt.NodeName)
	}
	switch {
	case p.Resumed != nil:
		opt.UID = p.Resumed.UID
	case p.UID != "":
		opt.UID = p.UID
	}
	if opt.Seccomp, err = admission.SeccompProfiles(r.Dirs.SeccompDir(), podutil.LocalSeccompProfiles(p.Object.Pod)); err != nil {
		return err
	}
	var plan *pod.Plan
	if p.Action != upplan.Change {
		if plan, err = manifest.Build(p.Object, images, opt); err == nil {
			plan.Cluster = p.Cluster
		}
	} else {
		plan, err = manifest.Update(p.Plan, p.Change.Old, p.Object, p.Change.Difference, images, opt)
	}
	if err == nil {
		err = admission.Adapt(r.Env, r.Preparation, plan, p.Object.Pod)
	}
	if err == nil {
		err = r.assignDevices(p, plan)
	}
	if err == nil {
		p.Plan = plan
		p.Plan.ImagesPending = p.AwaitsImages
	}
	return err
}

// Start starts the pods that do not run, and changes running ones that differ from their manifests. A pod
// that fails does not keep the others from starting.
func (r *Run) Start() error { return r.start(r.carryOut) }

// start stores the objects, and calls do for every pod, concurrently.
func (r *Run) start(do func(*Target) error) (err error) {
	defer r.Release()
	defer r.Preparation.End()
	defer func() { err = errors.Join(append(r.refused, err)...) }()
	stored, bound, err := objects.Apply(r.Env, r.Dirs, r.Stored, r.ReportTo)
	for _, o := range stored {
		if o.Revision == 1 {
			r.created = append(r.created, o)
		}
	}
	objects.NotifyPods(context.Background(), r.Env, r.Dirs, slices.Concat(stored, bound))
	if err != nil {
		return err
	}
	if _, _, err := objects.Apply(r.Env, r.Dirs, r.Workloads, r.ReportTo); err != nil {
		return err
	}
	errs := make([]error, len(r.Targets))
	ForEach(r.Targets, func(i int, p *Target) { errs[i] = do(p) })
	return errors.Join(errs...)
}

// carryOut carries out the action of a pod.
func (r *Run) carryOut(p *Target) (err error) {
	switch {
	case p.Action == upplan.Keep && p.AwaitsImages:
		return retryPull(p)
	case p.Action == upplan.Keep:
		return nil
	case p.Action == upplan.Change:
		err = r.apply(p)
	case p.Action == upplan.Replace && r.Replace && !p.AwaitsImages:
		err = r.replacePod(p)
	default:
		return r.startNew(p)
	}
	p.Started = err == nil
	return err
}

// startNew starts a pod that does not run, or its puller, after stopping the pod that it replaces.
func (r *Run) startNew(p *Target) error {
	if p.Action == upplan.Replace {
		if err := r.stillPending(p); err != nil {
			return err
		}
		if err := r.StopOld(p); err != nil {
			return err
		}
	}
	start := r.startPod
	if p.AwaitsImages {
		start = r.startPull
	}
	err := r.begin(p, start)
	// Another command may still be removing what is left of an old pod.
	for deadline := time.Now().Add(r.Env.GoneTime); errors.Is(err, store.ErrLocked) && !p.Pod.Exists() && time.Now().Before(deadline); {
		time.Sleep(podclient.PollTime)
		err = r.begin(p, start)
	}
	switch {
	case errors.Is(err, store.ErrLocked):
		return busyError(p.Pod)
	case err != nil:
		return fmt.Errorf("cannot start pod %s: %w", p.Pod.Name, err)
	}
	p.Started = true
	if p.replacement != "" {
		return nil
	}
	return r.Dirs.RemoveReplacement(p.Pod) // an unfinished replacement is obsolete: the pod has just started from a later manifest
}

// Started returns the pods that run now or have ended for good.
func (r *Run) Started() []*Target {
	var list []*Target
	for _, p := range r.Targets {
		if p.Started {
			list = append(list, p)
		}
	}
	return list
}

// options returns the options of Build for this machine.
func (r *Run) options() (manifest.BuildOptions, error) {
	memory, err := host.MemoryTotal()
	if err != nil {
		return manifest.BuildOptions{}, err
	}
	node, err := os.Hostname()
	if err != nil {
		return manifest.BuildOptions{}, fmt.Errorf("find the machine's name: %w", err)
	}
	allocatable := r.allocatable
	if allocatable == nil {
		disk, err := host.StatFS(r.Dirs.Data)
		if err != nil {
			return manifest.BuildOptions{}, err
		}
		allocatable = corev1.ResourceList{
			corev1.ResourceCPU:              *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI),
			corev1.ResourceMemory:           *resource.NewQuantity(memory, resource.BinarySI),
			corev1.ResourceEphemeralStorage: *resource.NewQuantity(int64(disk.Size), resource.BinarySI),
		}
	}
	return manifest.BuildOptions{
		UID: objects.NewUID(), NodeName: node, NodeMemory: memory, Allocatable: allocatable,
		RequireLimits: r.RequireLimits, RemoveAtEnd: r.removeAtEnd,
	}, nil
}

// PrepareDryRun is Prepare without pulls and builds. It makes Plans only for pods whose images are all present.
func (r *Run) PrepareDryRun(ctx context.Context, builds []api.Build) error {
	for _, p := range r.Targets {
		p.Recreate = podclient.IsEnding(p.Pod) // it would be started again after its end
	}
	if err := r.inspect(ctx); err != nil {
		return err
	}
	images, err := r.Env.Deps.OpenImages(r.Dirs)
	if err != nil {
		return err
	}
	if r.lease, err = images.Lease(); err != nil {
		return err
	}
	found := map[pull.Request]pod.Image{}
	var errs []error
	for _, u := range r.imageRequests() {
		ref := u.Ref
		if u.ID != "" {
			ref = u.ID
		}
		img, err := images.Ensure(ctx, ref, image.Never, r.Pull)
		switch {
		case err == nil:
			found[u] = img
		case slices.ContainsFunc(builds, func(b api.Build) bool { return b.Image == u.Ref }):
			fmt.Fprintf(r.Env.ErrOut, "podrun: image %s is not present: it would be built\n", u.Ref)
		case u.Policy == image.Never || u.ID != "":
			errs = append(errs, fmt.Errorf("cannot use image %s: %w", u.Ref, err))
		default:
			fmt.Fprintf(r.Env.ErrOut, "podrun: image %s is not present: it would be pulled\n", u.Ref)
		}
	}
	for _, p := range slices.Concat(r.Targets, r.Samples) {
		whole := p.Action != upplan.Keep
		for _, i := range manifest.Images(p.Object.Pod) {
			_, here := found[p.ImageRequest(i)]
			whole = whole && (here || p.RanBefore() && !p.changes(i.Container))
		}
		if whole {
			errs = append(errs, r.Build(p, found))
		}
	}
	return errors.Join(append(errs, r.buildEphemeral(errors.Join(errs...)))...)
}
