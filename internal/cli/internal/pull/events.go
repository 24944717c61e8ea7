package pull

import (
	"fmt"
	"time"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/pod"
)

// LocalImageUsed is the reason of the event that a local copy is used, because the registry cannot be
// reached. The kubelet has no such event: there, the pull fails.
const LocalImageUsed = "LocalImageUsed"

// Pulling returns the event of a container whose image is pulled now. The words of this and the following events are
// the kubelet's (pkg/kubelet/images/image_manager.go).
func Pulling(container, ref string, began time.Time) pod.Event {
	return pod.Event{Type: pod.Normal, Reason: "Pulling", Container: container, Last: began, Message: fmt.Sprintf("Pulling image %q", ref)}
}

// Failure returns how a container waits after a failed attempt to make its image available, and the events of the
// attempt.
func Failure(container, ref string, cause error) (pod.Waiting, []pod.Event) {
	w := pod.Waiting{Reason: image.Reason(cause), Message: cause.Error()}
	first := warning(container, "Failed", fmt.Sprintf("Failed to pull image %q: %v", ref, cause))
	switch w.Reason {
	case image.ErrImageNeverPull:
		w.Message = fmt.Sprintf("Container image %q is not present with pull policy of Never", ref)
		first = warning(container, w.Reason, w.Message)
	case "":
		w.Reason = image.ErrImagePull
	}
	return w, []pod.Event{first, warning(container, "Failed", "Error: "+w.Reason)}
}

// BackOff returns the events of a container that waits for the next attempt to pull its image.
func BackOff(container, ref string) []pod.Event {
	return []pod.Event{
		{Type: pod.Normal, Reason: "BackOff", Container: container, Last: time.Now(), Message: fmt.Sprintf("Back-off pulling image %q", ref)},
		warning(container, "Failed", "Error: "+image.ImagePullBackOff),
	}
}

func warning(container, reason, message string) pod.Event {
	return pod.Event{Type: pod.Warning, Reason: reason, Container: container, Last: time.Now(), Message: message}
}
