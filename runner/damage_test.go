package runner

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// damages are what becomes of a file when a disk or somebody's program is at fault.
var damages = map[string]func(string) error{
	"gone":    os.Remove,
	"empty":   func(path string) error { return os.Truncate(path, 0) },
	"garbled": func(path string) error { return os.WriteFile(path, []byte("{{{{"), 0o600) },
	"half":    func(path string) error { return os.Truncate(path, 40) },
}

// TestDamagedPlanEndsThePod: no supervisor can run a pod without its plan. One after
// another would die, and the pod could not even be stopped.
func TestDamagedPlanEndsThePod(t *testing.T) {
	for name, damage := range damages {
		if name == "gone" { // then there is no pod to be removed either
			continue
		}
		t.Run(name, func(t *testing.T) {
			testenv.NoLeaks(t)
			w, _ := drowsy(t, newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")}))
			if err := damage(filepath.Join(w.place.DataDir(), "plan.json")); err != nil {
				t.Fatal(err)
			}
			w.dial().Close()
			w.final()
			if b, err := os.ReadFile(w.place.SupervisorLog()); err != nil || !bytes.Contains(b, []byte("read plan of pod")) {
				t.Errorf("it does not say why: %s %v", b, err)
			}
		})
	}
}

// TestDamagedContainerIsRestarted: what libcontainer has recorded of one container is lost.
// The other runs on.
func TestDamagedContainerIsRestarted(t *testing.T) {
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			testenv.NoLeaks(t)
			l := layer(t)
			plan := newPlan(nil, []pod.Container{shell(l, "a", "exec sleep 1000"), shell(l, "b", "exec sleep 1000")})
			plan.RestartPolicy = pod.RestartAlways
			w, _ := drowsy(t, plan)
			if err := damage(filepath.Join(w.place.LibcontainerDir(), "a-0", "state.json")); err != nil {
				t.Fatal(err)
			}
			w.until(func(st *pod.Status) bool { return running(st) && st.Containers[0].RestartCount == 1 })
			if code, out := w.ask("a", "true"); code != 0 {
				t.Error(out)
			}
			w.until(func(st *pod.Status) bool {
				if n := st.Containers[1].RestartCount; n != 0 {
					t.Errorf("%d restarts of the other", n)
				}
				return true
			})
		})
	}
}
