package runner

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// keeperKills is how many of a pod's keepers are killed, besides supervisors and, last, the
// guard.
const keeperKills = 4

// A keeper that is killed at any moment of its pod's life, with or without its supervisor
// before: another sandbox is made and the pod is served again, what had run counts as
// restarted, of what was logged no line is out of order, a stop is obeyed, and nothing is
// left. A guard that is killed is not missed.
func TestKilledKeepers(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	var slowest time.Duration
	for round := range killPods * *torture {
		t.Setenv("PODRUN_DOZE_AFTER", []string{"0", "10ms", "50ms"}[round%3])
		w := startWhole(t, killPlan(t, l, round%2 == 0))
		restarts := 0
		for range keeperKills {
			idle(time.Duration(rand.Int64N(int64(120 * time.Millisecond))))
			keeper, _, ok := w.place.PodInit()
			if !ok {
				t.Fatal("the pod does not live")
			}
			if pid := supervisorOf(keeper); pid != 0 && rand.IntN(3) == 0 {
				unix.Kill(pid, unix.SIGKILL)
			}
			begun := time.Now()
			unix.Kill(keeper, unix.SIGKILL)
			for now := keeper; now == keeper; now, _, _ = w.place.PodInit() { // until another has signed the lock
				if time.Since(begun) > patient {
					t.Fatalf("there is no other keeper within %v", patient)
				}
			}
			st := w.untilAgain("served again", func(st *pod.Status) bool { return st.InitContainers[0].RestartCount >= 0 })
			slowest = max(slowest, time.Since(begun))
			if n := st.Containers[0].RestartCount; n < restarts || n > restarts+1 {
				t.Errorf("the app that stays was restarted %d times, and %d before", n, restarts)
			}
			restarts = st.Containers[0].RestartCount
		}
		if round%2 == 1 {
			if pid, ok := w.place.Monitor(); ok {
				unix.Kill(pid, unix.SIGKILL)
			}
		}
		keeper, _, _ := w.place.PodInit()
		if err := unix.Kill(keeper, unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if st := w.final(); !st.Deleting || !st.Phase.Terminal() {
			t.Errorf("the pod has ended as %+v", st)
		}
		w.inOrder("steady", restarts+1)
		if t.Failed() {
			t.Fatalf("pod %d", round)
		}
		w.remove()
	}
	t.Logf("%d kills of keepers; the slowest took %v to be served again", killPods*keeperKills**torture, slowest)
}

// inOrder looks at the lines of a container that counts, in every log there is.
func (w wholePod) inOrder(container string, most int) {
	w.t.Helper()
	for attempt := range most + 1 {
		if _, err := os.Stat(w.place.LogFile(container, attempt)); err != nil {
			continue // of the dead ones the last is kept
		}
		lines := parse(w.t, w.place.LogFile(container, attempt))
		for i, r := range lines {
			if r[2] != strconv.Itoa(i+1) && i < len(lines)-1 { // of the last there may be a part
				w.t.Fatalf("line %d of run %d is %q", i+1, attempt, r)
			}
		}
	}
}
