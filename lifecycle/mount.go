package lifecycle

import (
	"strings"
	"time"

	"github.com/podrun/podrun/pod"
)

const eventFailedMount = "FailedMount" // kubelet: pkg/kubelet/events

// How long after volumes could not be made it is tried again: twice as long each time
// (kubelet: pkg/util/goroutinemap/exponentialbackoff).
const (
	mountRetry    = 500 * time.Millisecond
	maxMountRetry = 2*time.Minute + 2*time.Second
)

// volumesFailed folds that volumes could not be made: the sandbox is not made either, and
// the containers wait. Of a sandbox that is up, its volumes stay as they were.
func (o *Observed) volumesFailed(e Event) {
	if o.Sandbox != SandboxCreating {
		return
	}
	o.Sandbox = SandboxNone
	if o.Ending != nil {
		o.Sandbox = SandboxDown
		return
	}
	wait := mountRetry
	for range o.Held {
		wait = min(2*wait, maxMountRetry)
	}
	o.Held++
	o.Retry = e.At.Boot + wait
}

// noteMounts tells of volumes that could not be made, each for itself.
func (o *Observed) noteMounts(e Event) {
	for line := range strings.Lines(e.Message) {
		o.note(e.At, pod.Warning, eventFailedMount, "", strings.TrimSuffix(line, "\n"))
	}
}
