package up_test

import (
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
)

// TestUpFailsOnUnmappedIDs checks that up fails before it creates anything if a user or group ID is not
// mapped.
func TestUpFailsOnUnmappedIDs(t *testing.T) {
	h := clitest.NewHost(t)
	manifest := strings.Replace(clitest.OneContainer, "spec:", "spec:\n  securityContext: {runAsUser: 65537, runAsGroup: 65536, supplementalGroups: [70000]}", 1)
	got := h.Begin(manifest, "up", "-d", "-").Wait()
	want := `podrun: container app of pod web runs with user id 65537, and a pod of this user has only the ids 0 to 65536
podrun: container app of pod web runs with group id 70000, and a pod of this user has only the ids 0 to 65536
hint: ask for more ids
`
	if got.Code != 125 || got.Err != want {
		t.Errorf("exit code %d, stderr %q, want %q", got.Code, got.Err, want)
	}
	if h.Dirs.Pod("default", "web").Exists() {
		t.Error("the pod was made")
	}
}
