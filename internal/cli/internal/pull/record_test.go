package pull

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/podrun/podrun/image"
)

// The first container that uses an image has the event of the pull. For the others the image is present.
func TestEventsOfAPull(t *testing.T) {
	var r Record
	u := Request{Ref: "busybox:1", Policy: image.IfNotPresent}
	r.Begin(u)
	for _, layer := range []string{"a", "b"} {
		r.Update(image.Progress{Image: u.Ref, Layer: layer, Status: image.Fetching, Done: 10, Total: 600})
		r.Update(image.Progress{Image: u.Ref, Layer: layer, Status: image.Done, Done: 600, Total: 600})
	}
	r.End(u, nil)
	checkEvents(t, &r, u, `a Pulling: Pulling image "busybox:1"
a Pulled: Successfully pulled image "busybox:1" in TIME. Image size: 1200 bytes.
b Pulled: Container image "busybox:1" already present on machine`)
}

// A pod that is made after failed attempts has their events. An image that is pulled again has no more than maxOldEvents.
func TestEventsOfFailedAttempts(t *testing.T) {
	var r Record
	u := Request{Ref: "busybox:1", Policy: image.Always}
	for range maxOldEvents {
		r.Begin(u)
		r.End(u, errors.New("no route"))
		if r.Cause(u) == nil {
			t.Error("the failed attempt has no cause")
		}
		r.BackOff()
	}
	r.Begin(u)
	r.End(u, nil)
	if n := len(r.Events("a", u)); n != maxOldEvents+2 {
		t.Errorf("%d events", n)
	}
	r = Record{}
	r.Begin(u)
	r.End(u, errors.New("no route"))
	r.BackOff()
	r.Begin(u)
	r.End(u, nil)
	checkEvents(t, &r, u, `a Pulling: Pulling image "busybox:1"
a Failed: Failed to pull image "busybox:1": no route
a Failed: Error: ErrImagePull
a BackOff: Back-off pulling image "busybox:1"
a Failed: Error: ImagePullBackOff
a Pulling: Pulling image "busybox:1"
a Pulled: Successfully pulled image "busybox:1" in TIME.
b Pulling: Pulling image "busybox:1"
b Failed: Failed to pull image "busybox:1": no route
b Failed: Error: ErrImagePull
b BackOff: Back-off pulling image "busybox:1"
b Failed: Error: ImagePullBackOff
b Pulled: Container image "busybox:1" already present on machine`)
}

// checkEvents compares the events of two containers of an image.
func checkEvents(t *testing.T, r *Record, u Request, want string) {
	t.Helper()
	var got []string
	for _, container := range []string{"a", "b"} {
		for _, e := range r.Events(container, u) {
			got = append(got, fmt.Sprint(e.Container, " ", e.Reason, ": ", regexp.MustCompile(`in .*\)`).ReplaceAllString(e.Message, "in TIME")))
		}
	}
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}
