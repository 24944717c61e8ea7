package runner

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/stage"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// killAll ends a pod with everything of it.
func (w wholePod) killAll() {
	w.t.Helper()
	_, keeper := w.processes()
	kill9(w.t, w.guardOf(keeper))
	kill9(w.t, keeper)
	reapAll()
	if w.place.Alive() {
		w.t.Fatal("the pod lives")
	}
}

// again starts a pod of which no process is left, as `podrun up` does.
func (w wholePod) again(plan *pod.Plan) {
	w.t.Helper()
	if err := w.start(plan); err != nil {
		w.t.Fatal(err)
	}
}

// What was recorded before the machine was started, in a runtime directory that outlived
// it, says nothing of times and processes: the logs tell the restart counts, and what has
// done its work is not run again.
func TestPodGoesOnAfterTheMachinesStart(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	plan := newPlan(nil, []pod.Container{shell(l, "a", "echo up; exec sleep 1000"), shell(l, "done", "echo done")})
	plan.RestartPolicy = pod.RestartOnFailure
	w := startWhole(t, plan)
	worked := func(st *pod.Status) bool {
		return st.Containers[0].State.Running != nil && st.Containers[1].State.Terminated != nil
	}
	w.until(worked)
	w.killAll()
	path := recordOf(w.place)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(b), `"Boot":"`, `"Boot":"another than `, 1)
	if text == string(b) {
		t.Fatalf("the state does not name the machine's run: %s", b)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w.again(plan)
	st := w.untilAgain("running again", worked)
	a, done := st.Containers[0], st.Containers[1]
	if a.RestartCount != 1 || a.LastState.Terminated == nil || !strings.Contains(a.LastState.Terminated.Message, "the machine was restarted") {
		t.Errorf("the app that ran is %+v", a)
	}
	if done.RestartCount != 0 || done.State.Terminated.ExitCode != 0 {
		t.Errorf("the app that had done its work is %+v", done)
	}
}

// A record that cannot be read is no reason to give a pod up.
func TestPodGoesOnWithoutItsRecord(t *testing.T) {
	testenv.NoLeaks(t)
	w := startWhole(t, risingPlan(t, "exec sleep 1000"))
	w.until(running)
	if err := os.WriteFile(recordOf(w.place), []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, keeper := w.processes()
	if err := unix.Kill(keeper, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.untilAgain("running again", func(st *pod.Status) bool { return running(st) && st.Containers[0].RestartCount == 1 })
}

// A pod that was killed in the middle of its start begins.
func TestPodKilledBeforeItRuns(t *testing.T) {
	testenv.NoLeaks(t)
	plan := risingPlan(t, "exec sleep 1000")
	plan.RestartPolicy = pod.RestartNever
	w := startWhole(t, plan)
	keeper, _, ok := w.place.PodInit()
	if !ok || stage.Guards(keeper, w.place) {
		t.Fatalf("the keeper is said to be %d: %t", keeper, ok)
	}
	unix.Kill(keeper, unix.SIGKILL)
	w.untilAgainOrEnded()
}

// untilAgainOrEnded waits until the pod runs or has ended.
func (w wholePod) untilAgainOrEnded() {
	w.t.Helper()
	for w.place.Alive() {
		if st, err := w.place.Status(); err == nil && (running(st) || st.Phase.Terminal()) {
			return
		}
	}
}
