package podup

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/pod"
)

// ImagePulls remembers how the images of a launch came to be on the machine, for the
// events of its pods.
type ImagePulls struct {
	mu    sync.Mutex
	byUse map[ImageUse]*imagePull
}

// imagePull is how one image was got.
type imagePull struct {
	began, ended time.Time
	pulled       bool             // the registry was asked
	size         map[string]int64 // of each layer, in bytes
	err          error            // why it could not be had
	past         []pod.Event      // of attempts that failed before
	reported     bool             // of the pull: later containers find the image there
}

// Begin records the start of a pull.
func (f *ImagePulls) Begin(u ImageUse) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byUse == nil {
		f.byUse = map[ImageUse]*imagePull{}
	}
	var past []pod.Event
	if before := f.byUse[u]; before != nil {
		past = before.past
	}
	f.byUse[u] = &imagePull{past: past, began: time.Now(), pulled: u.Policy == image.Always || u.Policy == image.Newer, size: map[string]int64{}}
}

// End records the end of a pull.
func (f *ImagePulls) End(u ImageUse, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byUse[u].ended, f.byUse[u].err = time.Now(), err
}

// asked notes that a registry is asked.
func (f *ImagePulls) asked(u ImageUse) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byUse[u].pulled = true
}

// copied notes why a copy on this machine is used though the registry was to be asked.
func (f *ImagePulls) copied(u ImageUse, why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	got := f.byUse[u]
	got.pulled = false
	got.past = append(got.past, pod.Event{Type: pod.Warning, Reason: LocalImageUsed, Last: time.Now(), Message: why.Error()})
}

// cause is why an image could not be had, or nil.
func (f *ImagePulls) cause(u ImageUse) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if got := f.byUse[u]; got != nil {
		return got.err
	}
	return nil
}

// Update is told of every layer that comes in.
func (f *ImagePulls) Update(e image.Progress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for u, got := range f.byUse {
		if u.Ref == e.Image && got.ended.IsZero() {
			got.pulled = true
			got.size[e.Layer] = max(e.Total, e.Done)
		}
	}
}

// Events are those of a container whose image was got, in the kubelet's words
// (pkg/kubelet/images/image_manager.go). Of containers with the same image the first
// pulls it.
func (f *ImagePulls) Events(container string, u ImageUse) (events []pod.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	got := f.byUse[u]
	if got == nil {
		return nil
	}
	for _, e := range got.past {
		e.Container = container
		events = append(events, e)
	}
	if !got.pulled || got.reported {
		return append(events, []pod.Event{{Type: pod.Normal, Reason: "Pulled", Container: container, Last: got.ended,
			Message: fmt.Sprintf("Container image %q already present on machine", u.Ref)}}...)
	}
	got.reported = true
	took := got.ended.Sub(got.began).Truncate(time.Millisecond)
	text := fmt.Sprintf("Successfully pulled image %q in %v (%v including waiting).", u.Ref, took, took)
	var size int64
	for _, n := range got.size {
		size += n
	}
	if size > 0 {
		text += fmt.Sprintf(" Image size: %v bytes.", size)
	}
	return append(events,
		pod.Event{Type: pod.Normal, Reason: "Pulling", Container: container, Last: got.began, Message: fmt.Sprintf("Pulling image %q", u.Ref)},
		pod.Event{Type: pod.Normal, Reason: "Pulled", Container: container, Last: got.ended, Message: text})
}

// fetched are the events of the images that a pod needs now: of one that runs, those
// of its changed containers.
func (r *Run) fetched(p *Target) []pod.Event {
	var events []pod.Event
	for _, i := range manifest.Images(p.Object.Pod) {
		if !p.Running || p.changes(i.Container) {
			events = append(events, r.fetches.Events(i.Container, p.Use(i))...)
		}
	}
	if p.Waiting != nil { // it has those of the beginning of pulls, and of copies
		events = slices.DeleteFunc(events, func(e pod.Event) bool { return e.Reason == "Pulling" || e.Reason == LocalImageUsed })
	}
	return events
}

// recordFailedPulls tells pods that run, and need images that cannot be had, in an event.
// Others have no place for one: the command's error says it.
func (r *Run) recordFailedPulls() error {
	var errs []error
	for _, p := range r.Targets {
		var events []pod.Event
		for _, i := range manifest.Images(p.Object.Pod) {
			got := r.fetches.byUse[p.Use(i)]
			if got != nil && got.err != nil && p.Running && p.changes(i.Container) {
				events = append(events, pod.Event{Type: pod.Warning, Reason: "Failed", Container: i.Container, Last: got.ended,
					Message: fmt.Sprintf("Failed to pull image %q: %v", i.Reference, got.err)})
			}
		}
		errs = append(errs, p.Pod.AddEvents(events...))
	}
	return errors.Join(errs...)
}
