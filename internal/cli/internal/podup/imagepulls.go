package podup

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/pod"
)

// ImagePulls records how the images of a run were pulled, for the events of its pods.
type ImagePulls struct {
	mu        sync.Mutex
	byRequest map[ImageRequest]*imagePull
}

// imagePull records the pull of one image.
type imagePull struct {
	began, ended time.Time
	pulled       bool             // the registry was contacted
	size         map[string]int64 // of each layer, in bytes
	err          error            // why the pull failed
	events       []pod.Event      // events of failed attempts
	reported     bool             // the pull has its event; for later containers the image is present
}

// Begin records the start of a pull.
func (f *ImagePulls) Begin(u ImageRequest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byRequest == nil {
		f.byRequest = map[ImageRequest]*imagePull{}
	}
	var events []pod.Event
	if before := f.byRequest[u]; before != nil {
		events = before.events
	}
	f.byRequest[u] = &imagePull{events: events, began: time.Now(), pulled: u.Policy == image.Always || u.Policy == image.Newer, size: map[string]int64{}}
}

// End records the end of a pull.
func (f *ImagePulls) End(u ImageRequest, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byRequest[u].ended, f.byRequest[u].err = time.Now(), err
}

// notePull records that a registry is contacted.
func (f *ImagePulls) notePull(u ImageRequest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byRequest[u].pulled = true
}

// noteLocalCopy records why a local copy is used although the registry should have been contacted.
func (f *ImagePulls) noteLocalCopy(u ImageRequest, why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	got := f.byRequest[u]
	got.pulled = false
	got.events = append(got.events, pod.Event{Type: pod.Warning, Reason: LocalImageUsed, Last: time.Now(), Message: why.Error()})
}

// cause returns why an image could not be pulled, or nil.
func (f *ImagePulls) cause(u ImageRequest) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if got := f.byRequest[u]; got != nil {
		return got.err
	}
	return nil
}

// Update records the progress of one layer.
func (f *ImagePulls) Update(e image.Progress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for u, got := range f.byRequest {
		if u.Ref == e.Image && got.ended.IsZero() {
			got.pulled = true
			got.size[e.Layer] = max(e.Total, e.Done)
		}
	}
}

// Events returns the events of a container's image, in the kubelet's words
// (pkg/kubelet/images/image_manager.go). If several containers use the same image, the first one has the
// event of the pull.
func (f *ImagePulls) Events(container string, u ImageRequest) (events []pod.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	got := f.byRequest[u]
	if got == nil {
		return nil
	}
	for _, e := range got.events {
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

// pullEvents returns the events of the images that a pod needs now. For a running pod these are the images
// of its changed containers.
func (r *Run) pullEvents(p *Target) []pod.Event {
	var events []pod.Event
	for _, i := range manifest.Images(p.Object.Pod) {
		if !p.RanBefore() || p.changes(i.Container) {
			events = append(events, r.pulls.Events(i.Container, p.ImageRequest(i))...)
		}
	}
	if p.Puller != nil { // it already has the events of started pulls and of local copies
		events = slices.DeleteFunc(events, func(e pod.Event) bool { return e.Reason == "Pulling" || e.Reason == LocalImageUsed })
	}
	return events
}

// recordFailedPulls adds an event to running pods whose new images cannot be pulled. A pod that does not
// run has no record for events; the command's error reports its failure.
func (r *Run) recordFailedPulls() error {
	var errs []error
	for _, p := range r.Targets {
		var events []pod.Event
		for _, i := range manifest.Images(p.Object.Pod) {
			got := r.pulls.byRequest[p.ImageRequest(i)]
			if got != nil && got.err != nil && p.changes(i.Container) {
				events = append(events, pod.Event{Type: pod.Warning, Reason: "Failed", Container: i.Container, Last: got.ended,
					Message: fmt.Sprintf("Failed to pull image %q: %v", i.Reference, got.err)})
			}
		}
		errs = append(errs, p.Pod.AddEvents(events...))
	}
	return errors.Join(errs...)
}
