package runner

import (
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// Where it is asked for, the program pasta carries the pod's traffic; it outlives
// supervisors, and ends with the pod. Ports of the host are podrun's own.
func TestPasta(t *testing.T) {
	testenv.Need(t, func() error { _, err := exec.LookPath(pastaProgram); return err })
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	remoteHost(t)
	if out, err := exec.Command("ip", "route", "add", "default", "via", "10.77.0.2").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out) // without one pasta knows no interface
	}
	plan := serving(t)
	plan.Network = pod.NetworkPasta
	w := startWhole(t, plan)
	w.until(running)
	for round := range 2 {
		if _, out := w.ask("a", "/bin/sh", "-c", "ip addr"); !regexp.MustCompile("inet 10.77.0.1/").MatchString(out) {
			t.Errorf("round %d: %q", round, out)
		}
		served(t, time.Minute)
		supervisor, keeper := w.processes()
		w.murder(supervisor, keeper)
	}
	st, err := w.place.Status()
	if err != nil || len(st.Warnings) > 0 {
		t.Errorf("warnings %q: %v", st.Warnings, err)
	}
}

// Without the program the pod does not start, and the cure is told.
func TestPastaIsMissing(t *testing.T) {
	t.Setenv("PATH", "/nowhere")
	err := (&sandbox{}).startPasta()
	if err == nil || !regexp.MustCompile("not installed").MatchString(err.Error()) {
		t.Errorf("%v", err)
	}
}
