package podup

import (
	"errors"
	"slices"

	"github.com/podrun/podrun/internal/cli/internal/pull"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/pod"
)

// pullEvents returns the events of the images that a pod needs now. For a running pod these are the images
// of its changed containers.
func (r *Run) pullEvents(p *Target) []pod.Event {
	var events []pod.Event
	for _, i := range manifest.Images(p.Object.Pod) {
		if !p.RanBefore() || p.changes(i.Container) {
			events = append(events, r.pulls.Events(i.Container, p.ImageRequest(i))...)
		}
	}
	if p.Pending != nil { // it already has the events of started pulls and of local copies
		events = slices.DeleteFunc(events, func(e pod.Event) bool { return e.Reason == "Pulling" || e.Reason == pull.LocalImageUsed })
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
			if cause := r.pulls.Cause(p.ImageRequest(i)); cause != nil && p.changes(i.Container) {
				_, failure := pull.Failure(i.Container, i.Reference, cause)
				events = append(events, failure[0])
			}
		}
		errs = append(errs, p.Pod.AddEvents(events...))
	}
	return errors.Join(errs...)
}
