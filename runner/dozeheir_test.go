package runner

import (
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// attributes is a shell script that prints what a process has from its parents.
const attributes = `exec 2>&1
cat /proc/self/limits /proc/self/oom_score_adj
grep -E '^(Sig(Blk|Ign|Cgt)|Cap|NoNewPrivs|Seccomp|Groups|Umask|Uid|Gid|CoreDumping|THP)' /proc/self/status
umask; env; for fd in /proc/self/fd/* /proc/1/fd/*; do readlink $fd; done; tr '\0' '\n' </proc/1/environ; cat /proc/1/mountinfo | wc -l
`

// What a container or a command in it has does not depend on whether the supervisor
// has dozed, nor on which signals the one who started the pod ignores.
func TestWokenSupervisorHandsOnNothing(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared %v", shared), func(t *testing.T) {
			testenv.NoLeaks(t)
			signal.Ignore(unix.SIGHUP, unix.SIGINT)
			t.Cleanup(func() { signal.Reset(unix.SIGHUP, unix.SIGINT) })
			plan := withFifos(t, newPlan(nil, []pod.Container{
				shell(layer(t), "a", attributes+"read x < /v/fifo; exit 7"),
			}), "fifo")
			plan.RestartPolicy, plan.ShareProcessNamespace = pod.RestartAlways, shared
			plan.Containers[0].User = "1000:1000"
			t.Setenv("PODRUN_DOZE_AFTER", "200ms")
			w := startWhole(t, plan)
			w.until(running)
			script := []string{"/bin/sh", "-c", attributes}
			supervisor, keeper := w.processes()
			_, early := w.ask("a", script...)
			if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", supervisor)); string(b) != "podrun-superv\n" {
				t.Fatalf("supervisor is called %q", b)
			}
			w.asleep(keeper)
			_, late := w.ask("a", script...)
			compareText(t, "exec", early, late)
			w.asleep(keeper)
			w.release("fifo")
			w.until(func(st *pod.Status) bool { return running(st) && st.Containers[0].RestartCount == 1 })
			w.release("fifo") // once it waits there it has printed everything
			w.until(func(st *pod.Status) bool { return st.Containers[0].State.Running == nil })
			first, second := logText(t, w.place, "a", 0), logText(t, w.place, "a", 1)
			compareText(t, "container", first, second)
			for _, want := range []string{"SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000"} {
				if !strings.Contains(first, want) || !strings.Contains(early, want) {
					t.Errorf("no %q in %s%s", want, first, early)
				}
			}
			if strings.Contains(second+late, "PODRUN") {
				t.Errorf("podrun's environment in %s%s", second, late)
			}
		})
	}
}

var inode = regexp.MustCompile(`\[\d+\]|/proc/\d+/`)

func compareText(t *testing.T, what, before, after string) {
	t.Helper()
	before, after = inode.ReplaceAllString(before, "[]"), inode.ReplaceAllString(after, "[]")
	if before != after || before == "" {
		t.Errorf("%s before any sleep:\n%s\nafter it:\n%s", what, before, after)
	}
}

func logText(t *testing.T, place store.Pod, container string, attempt int) string {
	t.Helper()
	var b strings.Builder
	for _, r := range parse(t, place.LogFile(container, attempt)) {
		b.WriteString(r[2] + "\n")
	}
	return b.String()
}
