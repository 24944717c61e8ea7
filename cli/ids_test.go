package cli

import (
	"strings"
	"testing"
)

// A user or group that the machine has no id for would keep its container waiting for
// ever: up refuses before anything is made.
func TestUpRefusesIDsThatAPodDoesNotHave(t *testing.T) {
	w := newWorld(t)
	manifest := strings.Replace(oneContainer, "spec:", "spec:\n  securityContext: {runAsUser: 65537, runAsGroup: 65536, supplementalGroups: [70000]}", 1)
	got := w.begin(manifest, "up", "-d", "-").wait()
	want := `podrun: container app of pod web runs with user id 65537, and a pod of this user has only the ids 0 to 65536
podrun: container app of pod web runs with group id 70000, and a pod of this user has only the ids 0 to 65536
hint: ask for more ids
`
	if got.code != 125 || got.err != want {
		t.Errorf("exit code %d, stderr %q, want %q", got.code, got.err, want)
	}
	if w.dirs.Pod("default", "web").Exists() {
		t.Error("the pod was made")
	}
}
