package runner

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// Supervisors that die one after the other do not spin: the next ones begin later and
// later, which the log says, and the containers run on. A stop that comes while there is
// none is obeyed.
func TestSupervisorsThatDieInALoop(t *testing.T) {
	testenv.NoLeaks(t)
	t.Setenv("PODRUN_DOZE_AFTER", "0")
	w := startWhole(t, withFifos(t, newPlan(nil, []pod.Container{shell(layer(t), "a", obedient)}), "never"))
	w.until(running)
	w.release("never")
	_, keeper := w.processes()
	said := func() string {
		b, _ := os.ReadFile(w.place.SupervisorLog())
		return string(b)
	}
	for deadline := time.Now().Add(time.Minute); !strings.Contains(said(), "another begins in 0.8 s"); {
		if pid := supervisorOf(keeper); pid != 0 {
			unix.Kill(pid, unix.SIGKILL)
		}
		if time.Now().After(deadline) {
			t.Fatalf("the keeper does not wait longer and longer: %s", said())
		}
	}
	if n := strings.Count(said(), "another begins in 0.0 s"); n != 5 {
		t.Errorf("%d supervisors began at once, want 5: %s", n, said())
	}
	if err := unix.Kill(keeper, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if c := w.final().Containers[0]; c.RestartCount != 0 || c.State.Terminated == nil || c.State.Terminated.ExitCode != 3 {
		t.Errorf("the container ended as %+v", c)
	}
}

// A supervisor that hangs can be replaced through the keeper.
func TestKeeperReplacesTheSupervisor(t *testing.T) {
	testenv.NoLeaks(t)
	t.Setenv("PODRUN_DOZE_AFTER", "0")
	w := startWhole(t, newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")}))
	w.until(running)
	hangs, keeper := w.processes()
	if err := unix.Kill(hangs, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for st, ok := stat(hangs); ok && st.state != 'T'; { // from here on it answers nobody
		st, ok = stat(hangs)
	}
	if err := unix.Kill(keeper, unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	w.until(func(st *pod.Status) bool { return running(st) && st.Containers[0].RestartCount == 0 })
	if now, _ := w.processes(); now == hangs {
		t.Error("it is the same supervisor")
	}
}
