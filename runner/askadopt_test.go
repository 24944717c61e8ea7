package runner

import (
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/store"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/pod"
)

// TestAskingOutlivesTheSupervisor: probes go on when a supervisor is killed in the
// middle of one, a preStop hook is run again, and nothing is restarted.
func TestAskingOutlivesTheSupervisor(t *testing.T) {
	testenv.NoLeaks(t)
	c := shell(layer(t), "a", "touch /tmp/well; trap 'echo bye; exit 0' TERM; while true; do sleep 0.1; done")
	c.Readiness = probed(execHandler("echo asked > /proc/1/fd/1; sleep 0.2; test -f /tmp/well"))
	c.PreStop = new(execHandler("echo hook > /proc/1/fd/1; sleep 2"))
	plan := newPlan(nil, []pod.Container{c})
	plan.GraceSeconds = 60
	w := startWhole(t, plan)
	w.until((*pod.Status).Ready)
	supervisor, keeper := w.processes()
	for range 3 {
		w.logged("asked", strings.Count(w.output(), "asked")+1)
		supervisor = w.murder(supervisor, keeper)
	}
	w.until(func(st *pod.Status) bool {
		if n := st.Containers[0].RestartCount; n != 0 {
			t.Errorf("%d restarts", n)
		}
		return st.Ready()
	})
	if code, out := w.ask("a", "rm", "/tmp/well"); code != 0 {
		t.Fatal(out)
	}
	w.until(func(st *pod.Status) bool { return !st.Ready() })

	conn := w.dial()
	defer conn.Close()
	if err := wire.WriteRequest(conn, wire.Request{Verb: wire.Stop, Stop: &wire.StopRequest{}}); err != nil {
		t.Fatal(err)
	}
	w.logged("hook", 1)
	supervisor, keeper = w.processes()
	w.murder(supervisor, keeper)
	w.logged("hook", 2)
	w.logged("bye", 1)
}

// stdout is a crilog.Sink.
type stdout struct{ strings.Builder }

func (s *stdout) Entry(e crilog.Entry) error {
	if e.Stream == "stdout" {
		s.Write(e.Text)
		if !e.Partial {
			s.WriteByte('\n')
		}
	}
	return nil
}

func (*stdout) Flush() error { return nil }

// stdoutOf is what a container's first instance has written.
func stdoutOf(t interface{ Fatal(...any) }, place store.Pod, container string) string {
	var s stdout
	if err := crilog.Read(place.LogDir(container), 0, crilog.All, &s); err != nil {
		t.Fatal(err)
	}
	return s.String()
}

func (w wholePod) output() string { return stdoutOf(w.t, w.place, "a") }

// logged waits until container a has said a word so often.
func (w wholePod) logged(word string, times int) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); strings.Count(w.output(), word) < times; {
		if time.Now().After(deadline) {
			w.t.Fatalf("no %d times %q within a minute, but %q", times, word, w.output())
		}
	}
}

// murder kills a supervisor and waits for the next.
func (w wholePod) murder(supervisor, keeper int) (next int) {
	w.t.Helper()
	if err := unix.Kill(supervisor, unix.SIGKILL); err != nil {
		w.t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if next = supervisorOf(keeper); next != 0 && next != supervisor {
			return next
		}
	}
	w.t.Fatal("no supervisor follows the one that was killed")
	return 0
}
