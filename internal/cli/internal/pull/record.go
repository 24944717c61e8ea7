package pull

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/pod"
)

// Request is an image with how it is to be pulled. Containers with equal requests share one pull.
type Request struct {
	Ref, Policy string
	Secrets     string // the pod's namespace and the names of its secrets for registries, or ""
	ID          string // the image's ID, if its name does not determine it
}

// Record holds how the images of a run were pulled, for the events of its pods.
type Record struct {
	mu        sync.Mutex
	byRequest map[Request]*imagePull
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
func (r *Record) Begin(u Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byRequest == nil {
		r.byRequest = map[Request]*imagePull{}
	}
	var events []pod.Event
	if before := r.byRequest[u]; before != nil {
		events = before.events
	}
	r.byRequest[u] = &imagePull{events: events, began: time.Now(), pulled: u.Policy == image.Always || u.Policy == image.Newer, size: map[string]int64{}}
}

// End records the end of a pull.
func (r *Record) End(u Request, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byRequest[u].ended, r.byRequest[u].err = time.Now(), err
}

// NotePull records that a registry is contacted.
func (r *Record) NotePull(u Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byRequest[u].pulled = true
}

// NoteLocalCopy records why a local copy is used although the registry should have been contacted.
func (r *Record) NoteLocalCopy(u Request, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.byRequest[u]
	got.pulled = false
	got.events = append(got.events, pod.Event{Type: pod.Warning, Reason: LocalImageUsed, Last: time.Now(), Message: cause.Error()})
}

// Cause returns why an image could not be pulled, or nil.
func (r *Record) Cause(u Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := r.byRequest[u]; got != nil {
		return got.err
	}
	return nil
}

// Update records the progress of one layer.
func (r *Record) Update(e image.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for u, got := range r.byRequest {
		if u.Ref == e.Image && got.ended.IsZero() {
			got.pulled = true
			got.size[e.Layer] = max(e.Total, e.Done)
		}
	}
}

// Events returns the events of a container's image, in the kubelet's words
// (pkg/kubelet/images/image_manager.go). If several containers use the same image, the first one has the
// event of the pull.
func (r *Record) Events(container string, u Request) (events []pod.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.byRequest[u]
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
		Pulling(container, u.Ref, got.began),
		pod.Event{Type: pod.Normal, Reason: "Pulled", Container: container, Last: got.ended, Message: text})
}

// Retryable reports whether a retry may fix all failures.
func (r *Record) Retryable() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	any := false
	for _, got := range r.byRequest {
		if got.err != nil {
			if any = true; !image.IsTransient(got.err) {
				return false
			}
		}
	}
	return any
}

// Failed reports whether the last attempt to pull an image failed.
func (r *Record) Failed(u Request) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byRequest[u] != nil && r.byRequest[u].err != nil
}

// BackOff records for every failed image that it waits for its next attempt, in the kubelet's words
// (pkg/kubelet/images/image_manager.go). The events are added to the pods once these exist.
func (r *Record) BackOff() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for u, got := range r.byRequest {
		if got.err == nil {
			continue
		}
		_, failed := Failure("", u.Ref, got.err)
		got.events = slices.Concat(got.events, []pod.Event{Pulling("", u.Ref, got.began)}, failed, BackOff("", u.Ref))
		if over := len(got.events) - maxOldEvents; over > 0 {
			got.events = got.events[over:]
		}
	}
}

// maxOldEvents is the number of events of failed attempts that are kept for an image.
const maxOldEvents = 50
