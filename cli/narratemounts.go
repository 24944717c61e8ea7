package cli

import (
	"time"

	"github.com/podrun/podrun/cli/internal/dirwatch"
	"github.com/podrun/podrun/pod"
)

// failedMount is the reason of the events that say why a volume is not there
// (kubelet: pkg/kubelet/events).
const failedMount = "FailedMount"

// mountsAfter is how long a pod may take before it is looked whether it lacks a volume: most run
// by then, and each of their files that is written would be looked at. A volume that is not there
// is tried again for longer.
const mountsAfter = 200 * time.Millisecond

// mounts says why volumes of a pod are not there, until the returned function is called:
// no container waits for them yet, so the status cannot say it, but events do. What a
// pod that runs has got over is not said.
func (n *narrator) mounts(p *upPod) (end func()) {
	var began time.Time
	if st, err := p.place.Status(); p.running && (err != nil || st.Phase != pod.Pending) {
		began = time.Now()
	}
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-time.After(mountsAfter):
		case <-done:
			return
		}
		watcher := dirwatch.Watch(p.place.RuntimeDir())
		defer watcher.Close()
		reader := p.place.EventReader()
		for {
			events, err := reader.ReadNew() // much else is written there
			if err == nil {                 // else the pod goes, or there are none yet
				n.mountEvents(events, began)
			}
			select {
			case <-watcher.Any():
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-over }
}

func (n *narrator) mountEvents(events []pod.Event, since time.Time) {
	for _, e := range events {
		if e.Reason == failedMount && !e.Last.Before(since) {
			n.say("a volume is not there: " + with(e.Reason, e.Message))
		}
	}
}
