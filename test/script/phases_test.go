package script

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/testwords"
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

// TestKilledInEveryPhase kills `podrun up` a little later each time, until it is
// done before that. Whatever there is of the pod by then, one `podrun down` leaves
// nothing of it.
func TestKilledInEveryPhase(t *testing.T) {
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
	for _, args := range [][]string{{"up", "-d", manifest}, {"down", "phases"}} {
		if out, err := h.podrun(args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	// A busy machine takes longer, but not many times as many kills.
	step := max(3*time.Millisecond, time.Since(begun)/100)
	kills := 0
	for after := step; ; after += step {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		up := h.podrun("up", "-d", manifest)
		done := up.Start() == nil && endsWithin(ctx, up)
		cancel()
		if out, err := h.podrun("down", "phases").CombinedOutput(); err != nil && !strings.Contains(string(out), "not found") {
			t.Fatalf("down after a kill at %v: %v\n%s", after, err, out)
		}
		var found []string
		if !testwords.Within(func() bool { found = h.left(); return len(found) == 0 }) {
			t.Fatalf("left behind by a kill at %v:\n%s", after, strings.Join(found, "\n"))
		}
		if done {
			break
		}
		kills++
	}
	if kills < 5 {
		t.Errorf("only %d kills before `up` was done: too few to meet every phase", kills)
	}
}

// endsWithin waits for the end of cmd, or kills it when ctx ends, and says whether
// it has ended by itself.
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
