package runner

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/internal/wire"
)

// torture multiplies the time for which the races below are tried: `make torture`.
var torture = flag.Int("torture", 1, "how many times as long races are sought")

// obedient exits with code 3 when it is stopped, and only then. It has its trap once it reads:
// w.release("never") waits for that.
const obedient = "trap 'exit 3' TERM; while :; do read x < /v/never; done"

// idle lets time pass: the races happen at moments that nothing signals.
func idle(d time.Duration) { time.Sleep(d) }

// withFifos gives every container of a Plan a volume with these fifos.
func withFifos(t *testing.T, plan *pod.Plan, names ...string) *pod.Plan {
	t.Helper()
	script := "cd /v"
	for _, n := range names {
		script += " && mkfifo " + n + " && chmod 666 " + n
	}
	plan.InitContainers = append([]pod.Container{shell(plan.Containers[0].Layers[0], "fifos", script)}, plan.InitContainers...)
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDir}}
	for _, list := range [][]pod.Container{plan.InitContainers, plan.Containers} {
		for i := range list {
			list[i].Mounts = []pod.Mount{{Volume: "v", Path: "/v"}}
		}
	}
	return plan
}

// release ends the reads of a fifo; it waits for the first reader.
func (w wholePod) release(fifo string) {
	w.t.Helper()
	f, err := os.OpenFile(filepath.Join(w.place.VolumesDir(), "v", fifo), os.O_WRONLY, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	f.Close()
}

// sound waits until the supervisor hibernates and no event is about to wake it.
func (w wholePod) sound(podInit int) {
	w.t.Helper()
	for {
		w.asleep(podInit)
		before, err1 := os.Stat(recordOf(w.place))
		idle(30 * time.Millisecond)
		w.asleep(podInit)
		after, err2 := os.Stat(recordOf(w.place))
		if err := errors.Join(err1, err2); err != nil {
			w.t.Fatal(err)
		}
		if before.ModTime().Equal(after.ModTime()) {
			return
		}
	}
}

// final waits for the end of the pod's processes and returns its last status.
func (w wholePod) final() *pod.Status {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); w.place.Alive(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatal("the pod has not ended within a minute")
		}
	}
	st, err := w.place.Status()
	if err != nil {
		w.t.Fatal(err)
	}
	return st
}

// A signal is a graceful stop, whether pod init gets it while the supervisor hibernates, is about to, or
// wakes, or the supervisor itself gets it.
func TestNoSignalIsLostAroundHibernation(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	for i := range 8 * *torture {
		sig := []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP}[i%3]
		late := time.Duration(rand.Int64N(int64(8 * time.Millisecond)))
		w, podInit := hibernated(t, withFifos(t, newPlan(nil, []pod.Container{shell(l, "a", obedient)}), "never"))
		w.release("never")
		target := podInit
		if i%8 < 4 {
			w.sound(podInit)
		} else {
			supervisor, _ := w.processes() // it wakes
			idle(late)
			if i%2 == 0 {
				target = supervisor
			}
		}
		if err := unix.Kill(target, sig); err != nil {
			t.Fatal(err)
		}
		st := w.final()
		if c := st.Containers[0].State.Terminated; !st.Deleting || c == nil || c.ExitCode != 3 {
			t.Fatalf("%v, %v after the wake: final status %+v", sig, late, st)
		}
		w.remove()
	}
}

// Commands that come while the supervisor is about to hibernate are run, all of them.
func TestExecRacesWithHibernation(t *testing.T) {
	testenv.NoLeaks(t)
	w, _ := hibernated(t, newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")}))
	for i := range 10 * *torture {
		idle(time.Duration(rand.Int64N(int64(50 * time.Millisecond))))
		want := fmt.Sprint(i)
		if code, out := w.ask("a", "/bin/sh", "-c", "echo "+want+"; exit 9"); code != 9 || out != want+"\n" {
			t.Fatalf("exec %d: %d %q", i, code, out)
		}
	}
}

// Containers that exit together during hibernation have their own exit codes, and their last output is in
// the log.
func TestManyExitDuringHibernation(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	for range 2 * *torture {
		var list []pod.Container
		for i := range 8 {
			list = append(list, shell(l, fmt.Sprint("c", i), fmt.Sprintf("read x < /v/fifo; printf 'last words'; exit %d", 10+i)))
		}
		w, podInit := hibernated(t, withFifos(t, newPlan(nil, list), "fifo"))
		w.asleep(podInit)
		fifo, err := os.OpenFile(filepath.Join(w.place.VolumesDir(), "v", "fifo"), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fifo.WriteString(strings.Repeat("\n", len(list))); err != nil { // one for each, however late
			t.Fatal(err)
		}
		for i, c := range w.final().Containers {
			if end := c.State.Terminated; end == nil || end.ExitCode != 10+i {
				t.Errorf("container %d ended as %+v", i, c.State)
			}
			if text := logText(t, w.place, c.Name, 0); text != "last words\n" {
				t.Errorf("container %d wrote %q", i, text)
			}
		}
		fifo.Close()
		w.remove()
	}
}

const (
	killPods     = 2           // times -torture: number of pods
	killsPerPod  = 10          // of its supervisors, from its start to its end
	managedAgain = time.Minute // within two seconds where nothing else runs: the slowest is logged
)

// A supervisor is killed at any moment of its pod's life: while containers are made, run, exit, or are
// stopped, while a command runs, while it runs or hibernates. No container is started twice, no exit code,
// line or stop is lost, nothing is left, and the pod is served again soon.
func TestKilledSupervisors(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	var slowest time.Duration
	for round := range killPods * *torture {
		after := []string{"0", "10ms", "50ms"}[round%3]
		t.Setenv("PODRUN_HIBERNATE_AFTER", after)
		k := &killing{t: t, wholePod: startWhole(t, killPlan(t, l, round%2 == 0))}
		for range killsPerPod - 2 {
			k.strike(time.Duration(rand.Int64N(int64(80 * time.Millisecond))))
			slowest = max(slowest, k.managed())
		}
		k.until(func(st *pod.Status) bool { return st.Containers[0].State.Running != nil && ended7(st.Containers[1]) })
		k.counts()
		k.end()
		if t.Failed() {
			t.Fatalf("pod %d, hibernating after %s", round, after)
		}
		k.remove()
	}
	t.Logf("%d kills; the slowest took %v to be served again", killPods*killsPerPod**torture, slowest)
}

// killPlan returns a pod with an init container, an app that counts and stays, and one that exits with code
// 7 and is started again, the second time after a back-off.
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

// ended7 reports whether a container has run twice, has exited with code 7 each time, and waits for its
// back-off.
func ended7(c pod.ContainerStatus) bool {
	end, waits := c.LastState.Terminated, c.State.Waiting
	return c.RestartCount == 1 && waits != nil && waits.Reason == "CrashLoopBackOff" && end != nil && end.ExitCode == 7
}

// killing is a pod whose supervisors are killed.
type killing struct {
	t *testing.T
	wholePod
	podInit int
}

// strike kills the supervisor after a while, if there is one by then.
func (k *killing) strike(late time.Duration) {
	k.t.Helper()
	conn, err := k.place.Dial() // it wakes
	if err != nil {
		k.t.Fatal(err)
	}
	defer conn.Close()
	k.podInit = peer(k.t, conn)
	if rand.IntN(3) == 0 { // while a command runs or is being made
		wire.WriteRequest(conn, wire.Request{Verb: wire.Exec, Exec: &wire.ExecRequest{Container: "steady", Args: []string{"sleep", "1000"}, TTY: true}})
	}
	idle(late)
	if pid := supervisorOf(k.podInit); pid != 0 {
		unix.Kill(pid, unix.SIGKILL)
	}
}

// managed waits until a supervisor sends a status, which must not have changed, and returns how long that
// took.
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

// ask1 returns the status that a supervisor sends, or nil if it dies before.
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

// counts waits until the app that counts has set its trap: an earlier stop would end it with another code.
func (k *killing) counts() {
	k.t.Helper()
	for begun := time.Now(); time.Since(begun) < managedAgain; idle(time.Millisecond) {
		if st, err := os.Stat(k.place.LogFile("steady", 0)); err == nil && st.Size() > 0 {
			return
		}
	}
	k.t.Errorf("the app that counts says nothing")
}

// end stops the pod while its supervisors are killed, and checks the result.
func (k *killing) end() {
	k.t.Helper()
	if err := unix.Kill(k.podInit, unix.SIGTERM); err != nil {
		k.t.Fatal(err)
	}
	for range 2 {
		idle(time.Duration(rand.Int64N(int64(30 * time.Millisecond))))
		if pid := supervisorOf(k.podInit); pid != 0 {
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
