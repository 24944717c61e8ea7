package script

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/scriptcmd"
)

const phasesPod = `
apiVersion: v1
kind: Pod
metadata: {name: phases}
spec:
  terminationGracePeriodSeconds: 0
  volumes: [{name: v, emptyDir: {}}]
  initContainers:
  - {name: prepare, image: busybox, imagePullPolicy: Never, command: [touch, /v/x], volumeMounts: [{name: v, mountPath: /v}]}
  containers:
  - {name: app, image: busybox, imagePullPolicy: Never, command: [sleep, "1000"], volumeMounts: [{name: v, mountPath: /v}]}
`

// enoughKills is the minimum number of kills during `podrun up`.
const enoughKills = 10

// TestKilledInEveryPhase kills `podrun up` a little later each time, until the command finishes
// first; with too few kills it repeats that with smaller steps. Whatever exists of the pod by then,
// one `podrun down` removes all of it.
func TestKilledInEveryPhase(t *testing.T) {
	t.Parallel()
	bin, rootfs := prepare(t)
	h, err := newHost(t.TempDir(), bin, rootfs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.clear)
	manifest := filepath.Join(h.dir, "pod.yaml")
	if err := os.WriteFile(manifest, []byte(phasesPod), 0o600); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if out, err := h.podrun("up", "-d", manifest).CombinedOutput(); err != nil {
		t.Fatalf("up: %v\n%s", err, out)
	}
	step := time.Since(begun) / enoughKills
	h.downLeavesNothing(t, "an undisturbed up")
	for kills := 0; kills < enoughKills; step /= 2 {
		for after := step; h.killedUp(t, manifest, after); after += step {
			kills++
		}
	}
}

// killedUp starts `podrun up` of the manifest, kills it after a time, takes the pod down, and
// reports whether the kill came before the end of `up`.
func (h *host) killedUp(t *testing.T, manifest string, after time.Duration) bool {
	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()
	up := h.podrun("up", "-d", manifest)
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	ended := endsWithin(ctx, up)
	h.downLeavesNothing(t, fmt.Sprintf("a kill after %v", after))
	return !ended
}

func (h *host) downLeavesNothing(t *testing.T, what string) {
	t.Helper()
	if out, err := h.podrun("down", "phases").CombinedOutput(); err != nil && !strings.Contains(string(out), "not found") {
		t.Fatalf("down after %s: %v\n%s", what, err, out)
	}
	var found []string
	if !scriptcmd.Poll(func() bool { found = h.left(); return len(found) == 0 }) {
		t.Fatalf("left behind by %s:\n%s", what, strings.Join(found, "\n"))
	}
}

// endsWithin waits for the end of cmd, or kills it when ctx ends, and reports whether it has ended
// by itself.
func endsWithin(ctx context.Context, cmd *exec.Cmd) bool {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-ended:
		return true
	case <-ctx.Done():
		cmd.Process.Kill()
		<-ended
		return false
	}
}
