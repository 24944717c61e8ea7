package cli

import (
	"strings"
	"testing"
)

// A device that cannot be had is refused with its container, and where descriptions are.
func TestDevicesThatAreNotThere(t *testing.T) {
	w := newWorld(t)
	got := w.begin(strings.Replace(oneContainer, "name: web", "name: web, annotations: {cdi.k8s.io/a: v.example/c=none}", 1), "up", "-d", "-").wait()
	if got.code == 0 || !strings.Contains(got.err, "container app of pod web: no file describes the device v.example/c=none") || !strings.Contains(got.err, "/etc/cdi") {
		t.Errorf("exit code %d, stderr %q", got.code, got.err)
	}
	if w.dirs.Pod("default", "web").Exists() {
		t.Error("the pod was made")
	}
}
