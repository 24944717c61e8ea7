package runner

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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
	// Its end is not passed over in silence, whoever began it.
	w.until(running)
	netFile, _ := (&sandbox{store: w.place}).pastaFiles()
	if err := unix.Kill(processWith(t, netFile), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.until(func(st *pod.Status) bool {
		return slices.ContainsFunc(st.Warnings, func(said string) bool { return strings.HasPrefix(said, "pasta has ended") })
	})
}

// processWith is the one that has an argument.
func processWith(t *testing.T, argument string) (pid int) {
	t.Helper()
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		b, _ := os.ReadFile(dir + "/cmdline")
		if slices.Contains(strings.Split(string(b), "\x00"), argument) {
			pid, _ = strconv.Atoi(filepath.Base(dir))
			return pid
		}
	}
	t.Fatalf("no process has the argument %s", argument)
	return 0
}

// Without the program the pod does not start, and the cure is told.
func TestPastaIsMissing(t *testing.T) {
	t.Setenv("PATH", "/nowhere")
	err := (&sandbox{}).startPasta()
	if err == nil || !regexp.MustCompile("not installed").MatchString(err.Error()) {
		t.Errorf("%v", err)
	}
}

// One that hangs is not waited for without end, and what it has said is told.
func TestPastaHangs(t *testing.T) {
	testenv.NoLeaks(t)
	program := filepath.Join(t.TempDir(), pastaProgram)
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho nobody answers\nexec sleep 1000\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for patience := time.Second; ; patience *= 2 { // until it comes to say something
		_, err := runPasta(program, patience)
		if err == nil || !strings.Contains(err.Error(), "has not connected the pod's network") {
			t.Fatalf("%v", err)
		}
		if strings.Contains(err.Error(), "nobody answers") {
			return
		}
		if patience > time.Minute {
			t.Fatalf("what it says is lost: %v", err)
		}
	}
}
