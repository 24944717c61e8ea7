package cli

import (
	"fmt"
	"sync"
	"time"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/pod"
)

// fetches remembers how the images of a launch came to be on the machine, for the
// events of its pods.
type fetches struct {
	mu    sync.Mutex
	byUse map[use]*fetch
}

// fetch is how one image was got.
type fetch struct {
	began, ended time.Time
	pulled       bool             // the registry was asked
	size         map[string]int64 // of each layer, in bytes
	told         bool             // of the pull: later containers find the image there
}

func (f *fetches) begin(u use) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byUse == nil {
		f.byUse = map[use]*fetch{}
	}
	f.byUse[u] = &fetch{began: time.Now(), pulled: u.policy == image.Always, size: map[string]int64{}}
}

func (f *fetches) end(u use) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byUse[u].ended = time.Now()
}

// tell is told of every layer that comes in.
func (f *fetches) tell(e image.Progress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for u, got := range f.byUse {
		if u.ref == e.Image && got.ended.IsZero() {
			got.pulled = true
			got.size[e.Layer] = max(e.Total, e.Done)
		}
	}
}

// events are those of a container whose image was got, in the kubelet's words
// (pkg/kubelet/images/image_manager.go). Of containers with the same image the first
// pulls it.
func (f *fetches) events(container string, u use) []pod.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	got := f.byUse[u]
	if got == nil {
		return nil
	}
	if !got.pulled || got.told {
		return []pod.Event{{Type: pod.Normal, Reason: "Pulled", Container: container, Last: got.ended,
			Message: fmt.Sprintf("Container image %q already present on machine", u.ref)}}
	}
	got.told = true
	took := got.ended.Sub(got.began).Truncate(time.Millisecond)
	text := fmt.Sprintf("Successfully pulled image %q in %v (%v including waiting).", u.ref, took, took)
	var size int64
	for _, n := range got.size {
		size += n
	}
	if size > 0 {
		text += fmt.Sprintf(" Image size: %v bytes.", size)
	}
	return []pod.Event{
		{Type: pod.Normal, Reason: "Pulling", Container: container, Last: got.began, Message: fmt.Sprintf("Pulling image %q", u.ref)},
		{Type: pod.Normal, Reason: "Pulled", Container: container, Last: got.ended, Message: text},
	}
}

// fetched are the events that a pod has had before it was made.
func (l *launch) fetched(p *upPod) []pod.Event {
	var events []pod.Event
	for _, i := range manifest.Images(p.object.Pod) {
		events = append(events, l.fetches.events(i.Container, use{i.Reference, i.PullPolicy})...)
	}
	return events
}
