package runner

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// A crash starts no program of the host's, and leaves no file.
func TestCrashesLeaveNothing(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	p := start(t, newPlan(nil, []pod.Container{shell(l, "a", "exec sleep 1000")}))
	p.running()
	_, limits := p.exec("a", "/bin/sh", "-c", "cat /proc/1/limits; sh -c 'kill -SEGV $$'; ls /core* 2>/dev/null")
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(limits[strings.Index(limits, "Max core file size"):])
	if soft, hard := words[4], words[5]; strings.HasPrefix(string(pattern), "|") && (soft != "1" || hard != "1") || soft != "1" && soft != "0" {
		t.Errorf("core limits %s and %s, and the pattern is %s", soft, hard, pattern)
	}
	if strings.Contains(limits, "/core") {
		t.Errorf("a crash left a file: %s", limits)
	}
}

// Other limits of processes are those of who started the pod, as with containerd, though
// podrun's own programs raise theirs.
func TestLimitsOfWhoStartsThePod(t *testing.T) {
	testenv.NoLeaks(t)
	const look = "ulimit -Sn; ulimit -Hn; ulimit -Ss; ulimit -Hs; ulimit -Sf"
	want, err := exec.Command("/bin/sh", "-c", look).Output()
	if err != nil {
		t.Fatal(err)
	}
	l := layer(t)
	w := startWhole(t, newPlan(nil, []pod.Container{shell(l, "a", "exec sleep 1000")}))
	w.until(running)
	if _, got := w.ask("a", "/bin/sh", "-c", look); got != string(want) {
		t.Errorf("%q instead of %q", got, want)
	}
	if _, got := w.ask("a", "/bin/sh", "-c", "grep 'open files' /proc/1/limits"); !strings.Contains(strings.Join(strings.Fields(got), " "), strings.Join(strings.Fields(string(want))[:2], " ")) {
		t.Errorf("its first process: %q, want %q", got, want)
	}
}
