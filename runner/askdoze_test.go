package runner

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// TestRarelyProbedPodDozes: between two probes that are far apart the supervisor
// sleeps, and the pod stays ready.
func TestRarelyProbedPodDozes(t *testing.T) {
	testenv.NoLeaks(t)
	c := shell(layer(t), "a", "exec sleep 1000")
	c.Readiness = probed(execHandler("true"))
	c.Readiness.PeriodSeconds = 600
	plan := newPlan(nil, []pod.Container{c})
	w, keeper := drowsy(t, plan)
	if st, err := w.place.Status(); err != nil || !st.Ready() {
		t.Errorf("asleep it is %+v, %v", st, err)
	}
	if code, _ := w.ask("a", "true"); code != 0 {
		t.Errorf("exec ended with %d", code)
	}
	w.asleep(keeper)
	w.until((*pod.Status).Ready)
}

// TestOftenProbedPodStaysAwake: falling asleep costs more than it saves.
func TestOftenProbedPodStaysAwake(t *testing.T) {
	testenv.NoLeaks(t)
	t.Setenv("PODRUN_DOZE_AFTER", "20ms")
	c := shell(layer(t), "a", "exec sleep 1000")
	c.Readiness = probed(execHandler("echo asked > /proc/1/fd/1"))
	w := startWhole(t, newPlan(nil, []pod.Container{c}))
	w.until((*pod.Status).Ready)
	supervisor, _ := w.processes()
	for strings.Count(stdoutOf(t, w.place, "a"), "asked") < 3 {
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", supervisor)); err != nil || string(b) != "podrun-superv\n" {
			t.Fatalf("between two probes the supervisor is %q, %v", b, err)
		}
	}
}
