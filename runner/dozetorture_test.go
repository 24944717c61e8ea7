package runner

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// torture is how many times as long the races below are sought: `make torture`.
var torture = flag.Int("torture", 1, "how many times as long races are sought")

// obedient ends with code 3 when it is told to stop, and only then. It listens once
// it reads: w.release("never") waits for that.
const obedient = "trap 'exit 3' TERM; while :; do read x < /v/never; done"

// idle lets time pass: what is sought happens at moments that nothing tells of.
func idle(d time.Duration) { time.Sleep(d) }

// withFifos gives every container of a plan a volume with these fifos.
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

// release lets those go on who read from a fifo; it waits for the first of them.
func (w wholePod) release(fifo string) {
	w.t.Helper()
	f, err := os.OpenFile(filepath.Join(w.place.VolumesDir(), "v", fifo), os.O_WRONLY, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	f.Close()
}

// sound waits until the supervisor sleeps and nothing is on its way to wake it.
func (w wholePod) sound(keeper int) {
	w.t.Helper()
	for {
		w.asleep(keeper)
		before, err1 := os.Stat(recordOf(w.place))
		idle(30 * time.Millisecond)
		w.asleep(keeper)
		after, err2 := os.Stat(recordOf(w.place))
		if err := errors.Join(err1, err2); err != nil {
			w.t.Fatal(err)
		}
		if before.ModTime().Equal(after.ModTime()) {
			return
		}
	}
}

// final waits for the end of the pod's processes and gives its last status.
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

// A signal to the keeper while the supervisor sleeps, falls asleep or wakes, and one to
// the supervisor itself, is a graceful stop as ever.
func TestNoSignalIsLostAroundSleep(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	for i := range 8 * *torture {
		sig := []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP}[i%3]
		late := time.Duration(rand.Int64N(int64(8 * time.Millisecond)))
		w, keeper := drowsy(t, withFifos(t, newPlan(nil, []pod.Container{shell(l, "a", obedient)}), "never"))
		w.release("never")
		target := keeper
		if i%8 < 4 {
			w.sound(keeper)
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

// Commands that come while the supervisor falls asleep are run, every one.
func TestExecRacesWithSleep(t *testing.T) {
	testenv.NoLeaks(t)
	w, _ := drowsy(t, newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")}))
	for i := range 10 * *torture {
		idle(time.Duration(rand.Int64N(int64(50 * time.Millisecond))))
		want := fmt.Sprint(i)
		if code, out := w.ask("a", "/bin/sh", "-c", "echo "+want+"; exit 9"); code != 9 || out != want+"\n" {
			t.Fatalf("exec %d: %d %q", i, code, out)
		}
	}
}

// Containers that end together while nobody looks end with their own codes, and
// their last words are in the log.
func TestManyEndWhileAsleep(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	for range 2 * *torture {
		var list []pod.Container
		for i := range 8 {
			list = append(list, shell(l, fmt.Sprint("c", i), fmt.Sprintf("read x < /v/fifo; printf 'last words'; exit %d", 10+i)))
		}
		w, keeper := drowsy(t, withFifos(t, newPlan(nil, list), "fifo"))
		w.asleep(keeper)
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
