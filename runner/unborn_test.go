package runner

import (
	"os"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// A supervisor's Go starts while the pod's namespaces are made. Where they cannot be it does
// nothing: who starts the pod is told why, once, and no process is left.
func TestSupervisorOfAPodWithoutNamespaces(t *testing.T) {
	const limit = "/proc/sys/user/max_uts_namespaces" // of the test's user namespace
	before, err := os.ReadFile(limit)
	if err != nil {
		t.Fatal(err)
	}
	for name, hostpid := range map[string]bool{"its own PID namespace": false, "the host's": true} {
		t.Run(name, func(t *testing.T) {
			testenv.NoLeaks(t)
			plan := newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")})
			plan.HostPID = hostpid
			w := newWhole(t, plan)
			if err := os.WriteFile(limit, []byte("0"), 0); err != nil {
				t.Fatal(err)
			}
			err := w.start(plan)
			if err := os.WriteFile(limit, before, 0); err != nil {
				t.Fatal(err)
			}
			if err == nil {
				t.Fatal("the pod has been started")
			}
			if what := "make the pod's network, IPC and UTS namespaces: "; strings.Count(err.Error(), what) != 1 || strings.Contains(err.Error(), "\n") {
				t.Errorf("it was said: %v", err)
			}
			if _, err := os.Stat(recordOf(w.place)); err == nil {
				t.Error("a supervisor has taken the pod up")
			}
		})
	}
}
