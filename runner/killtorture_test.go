package runner

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/pod"
)

const (
	killPods     = 2           // times -torture: so many pods are sought for races
	killsPerPod  = 10          // of its supervisors, from its start to its end
	managedAgain = time.Minute // within two where nothing else runs: the slowest is logged
)

// A supervisor that is killed at any moment of its pod's life, while containers are
// made, run, end, or are stopped, while a command runs, asleep or awake: no container is
// started twice, no exit code, no line and no stop is lost, nothing is left, and the pod
// is served again soon.
func TestKilledSupervisors(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	var slowest time.Duration
	for round := range killPods * *torture {
		after := []string{"0", "10ms", "50ms"}[round%3]
		t.Setenv("PODRUN_DOZE_AFTER", after)
		k := &killing{t: t, wholePod: startWhole(t, killPlan(t, l, round%2 == 0))}
		for range killsPerPod - 2 {
			k.strike(time.Duration(rand.Int64N(int64(80 * time.Millisecond))))
			slowest = max(slowest, k.managed())
		}
		k.until(func(st *pod.Status) bool { return st.Containers[0].State.Running != nil && ended7(st.Containers[1]) })
		k.counts()
		k.end()
		if t.Failed() {
			t.Fatalf("pod %d, dozing after %s", round, after)
		}
		k.remove()
	}
	t.Logf("%d kills; the slowest took %v to be served again", killPods*killsPerPod**torture, slowest)
}

// killPlan is a pod with an init container, an app that counts and stays, and one that
// ends with code 7 and is started again, the second time after a back-off.
func killPlan(t *testing.T, layer string, shared bool) *pod.Plan {
	t.Helper()
	count := "trap 'exit 3' TERM; i=0; while :; do i=$((i+1)); echo $i; usleep 2000; done"
	plan := newPlan(
		[]pod.Container{shell(layer, "init", "usleep 20000; echo init")},
		[]pod.Container{shell(layer, "steady", count), shell(layer, "ends", "usleep 50000; echo last words; exit 7")},
	)
	plan.RestartPolicy, plan.ShareProcessNamespace = pod.RestartAlways, shared
	return plan
}

// ended7 says whether a container has run twice, has ended with code 7 each time, and
// waits for its back-off.
func ended7(c pod.ContainerStatus) bool {
	end, waits := c.LastState.Terminated, c.State.Waiting
	return c.RestartCount == 1 && waits != nil && waits.Reason == "CrashLoopBackOff" && end != nil && end.ExitCode == 7
}

// killing is a pod whose supervisors are killed.
type killing struct {
	t *testing.T
	wholePod
	keeper int
}

// strike kills the supervisor after a while, if there is one by then.
func (k *killing) strike(late time.Duration) {
	k.t.Helper()
	conn, err := k.place.Dial() // it wakes
	if err != nil {
		k.t.Fatal(err)
	}
	defer conn.Close()
	k.keeper = peer(k.t, conn)
	if rand.IntN(3) == 0 { // while a command runs or is being made
		wire.WriteRequest(conn, wire.Request{Verb: wire.Exec, Exec: &wire.ExecRequest{Container: "steady", Args: []string{"sleep", "1000"}, TTY: true}})
	}
	idle(late)
	if pid := supervisorOf(k.keeper); pid != 0 {
		unix.Kill(pid, unix.SIGKILL)
	}
}

// managed waits until a supervisor tells how the pod is, which is as it was.
func (k *killing) managed() time.Duration {
	k.t.Helper()
	begun := time.Now()
	for time.Since(begun) < managedAgain {
		if st := k.ask1(); st != nil {
			if c := st.Containers[0]; c.RestartCount > 0 || c.State.Terminated != nil {
				k.t.Errorf("the app that stays is %+v, was %+v, says %+v", c, c.LastState.Terminated, c.State)
			}
			return time.Since(begun)
		}
	}
	k.t.Errorf("nobody has served the pod within %v", managedAgain)
	return time.Since(begun)
}

// ask1 is the status that a supervisor tells, nil if it dies before.
func (k *killing) ask1() *pod.Status {
	conn, err := k.place.Dial()
	if err != nil {
		return nil
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(managedAgain))
	if wire.WriteRequest(conn, wire.Request{Verb: wire.Watch}) != nil {
		return nil
	}
	f, _, err := wire.ReadFrame(conn)
	if err != nil {
		return nil
	}
	return f.Status
}

// counts waits until the app that counts has set its trap: before that a stop ends it
// otherwise.
func (k *killing) counts() {
	k.t.Helper()
	for begun := time.Now(); time.Since(begun) < managedAgain; idle(time.Millisecond) {
		if st, err := os.Stat(k.place.LogFile("steady", 0)); err == nil && st.Size() > 0 {
			return
		}
	}
	k.t.Errorf("the app that counts says nothing")
}

// end stops the pod while its supervisors are killed, and looks at what has become of it.
func (k *killing) end() {
	k.t.Helper()
	if err := unix.Kill(k.keeper, unix.SIGTERM); err != nil {
		k.t.Fatal(err)
	}
	for range 2 {
		idle(time.Duration(rand.Int64N(int64(30 * time.Millisecond))))
		if pid := supervisorOf(k.keeper); pid != 0 {
			unix.Kill(pid, unix.SIGKILL)
		}
	}
	st := k.final()
	steady := st.Containers[0]
	if end := steady.State.Terminated; !st.Deleting || steady.RestartCount != 0 || end == nil || end.ExitCode != 3 {
		k.t.Errorf("the app that stays has ended as %+v: %+v, deleting: %v", steady, end, st.Deleting)
	}
	if init := st.InitContainers[0]; init.RestartCount != 0 || init.State.Terminated == nil || init.State.Terminated.ExitCode != 0 {
		k.t.Errorf("the init container is %+v, was %+v", init, init.LastState.Terminated)
	}
	last := st.Containers[1].State.Terminated
	if last == nil || last.ExitCode != 7 || st.Containers[1].RestartCount != 1 {
		k.t.Errorf("the app that ends is %+v", st.Containers[1])
	}
	for i, r := range parse(k.t, k.place.LogFile("steady", 0)) {
		if r[2] != strconv.Itoa(i+1) {
			k.t.Fatalf("line %d of the app that counts is %q", i+1, r)
		}
	}
	for attempt := range st.Containers[1].RestartCount + 1 {
		if text := logText(k.t, k.place, "ends", attempt); text != "last words\n" {
			k.t.Errorf("run %d of the app that ends wrote %q", attempt, text)
		}
	}
	if text := logText(k.t, k.place, "init", 0); text != "init\n" {
		k.t.Errorf("the init container wrote %q", text)
	}
}
