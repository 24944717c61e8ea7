package up_test

import (
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
)

// TestMissingDevices checks that a missing device is an error that names the container and the directories of
// the CDI specifications.
func TestMissingDevices(t *testing.T) {
	h := clitest.NewHost(t)
	got := h.Begin(strings.Replace(clitest.OneContainer, "name: web", "name: web, annotations: {cdi.k8s.io/a: v.example/c=none}", 1), "up", "-d", "-").Wait()
	if got.Code == 0 || !strings.Contains(got.Err, "container app of pod web: no file describes the device v.example/c=none") || !strings.Contains(got.Err, "/etc/cdi") {
		t.Errorf("exit code %d, stderr %q", got.Code, got.Err)
	}
	if h.Dirs.Pod("default", "web").Exists() {
		t.Error("the pod was made")
	}
}
