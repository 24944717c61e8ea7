package runner

import (
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/pod"
)

// A container has its OOM score on every start, not what the process that starts it
// happens to have by then (crun#1357: from the second start on it was the monitor's).
func TestOOMScoreOnEveryStart(t *testing.T) {
	testenv.NoLeaks(t)
	a := shell(layer(t), "a", "cat /proc/self/oom_score_adj; sh -c 'cat /proc/self/oom_score_adj'")
	a.OOMScoreAdj = 937
	b := shell(a.Layers[0], "b", a.Args[2]) // cannot go below the supervisor's own
	b.OOMScoreAdj = -997
	plan := newPlan(nil, []pod.Container{a, b})
	root := t.TempDir()
	place := store.Dirs{Data: filepath.Join(root, "data"), Runtime: filepath.Join(root, "run")}.Pod(plan.Namespace, plan.Name)
	if err := place.Create(plan, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Sethostname([]byte(plan.Hostname)); err != nil {
		t.Fatal(err)
	}
	e := testEngine(plan, place)
	await := func(kind lifecycle.EventKind) lifecycle.Event {
		t.Helper()
		for {
			select {
			case ev := <-e.Events():
				if ev.Kind == lifecycle.StartFailed || ev.Kind == lifecycle.SandboxLost {
					t.Fatalf("%+v", ev)
				}
				if ev.Kind == kind {
					return ev
				}
			case <-time.After(time.Minute):
				t.Fatalf("no %s within a minute", kind)
			}
		}
	}
	e.Do(lifecycle.Action{Kind: lifecycle.CreateSandbox})
	await(lifecycle.SandboxReady)
	own := ownOOMScore()
	for attempt := range 10 {
		for name, want := range map[string]int{"a": max(937, own), "b": own} {
			e.Do(lifecycle.Action{Kind: lifecycle.StartContainer, Container: name, Attempt: attempt})
			await(lifecycle.Exited)
			e.Record(&lifecycle.Observed{}) // the end is known: it can be reaped
			lines := parse(t, place.LogFile(name, attempt))
			if len(lines) != 2 {
				t.Fatalf("start %d of %s wrote %v", attempt+1, name, lines)
			}
			for _, r := range lines {
				if r[2] != strconv.Itoa(want) {
					t.Errorf("start %d of %s: oom_score_adj %s, want %d", attempt+1, name, r[2], want)
				}
			}
		}
		if now := ownOOMScore(); now != own {
			t.Fatalf("start %d has changed the supervisor's own from %d to %d", attempt+1, own, now)
		}
	}
	e.Do(lifecycle.Action{Kind: lifecycle.RemoveSandbox})
	await(lifecycle.SandboxGone)
}
