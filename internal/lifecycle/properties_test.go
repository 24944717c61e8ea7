package lifecycle

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/proptest"
)

// TestMain runs each property 10,000 times, which takes seconds.
func TestMain(m *testing.M) { proptest.Main(m, "10000") }

// TestProperties applies random events, late, repeated and out of order, to random pods, then stops
// them. It checks every action when it is issued (invariants_test.go).
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &fake{T: t, plan: drawPlan(t), procs: map[string]*proc{}}
		f.decide()
		for n := f.draw("steps", 0, 60); n > 0; n-- {
			f.randomStep()
			f.decide()
		}
		f.stopAndFinish()
		f.replay()
	})
}

// drawPlan draws a pod of up to four init containers and sidecars and one to four apps.
func drawPlan(t *rapid.T) *pod.Plan {
	n := func(label string, low, high int) int { return rapid.IntRange(low, high).Draw(t, label) }
	p := &pod.Plan{Name: "p", Namespace: "n", UID: "u", GraceSeconds: int64(n("grace", 0, 40))}
	p.RestartPolicy = []pod.RestartPolicy{pod.RestartAlways, pod.RestartOnFailure, pod.RestartNever}[n("policy", 0, 2)]
	if n("deadline?", 0, 3) == 0 {
		p.ActiveDeadlineSeconds = int64(n("deadline", 1, 100))
	}
	for i := n("inits", 0, 4); i > 0; i-- {
		p.InitContainers = append(p.InitContainers, pod.Container{
			Name: "i" + string(rune('0'+i)), Sidecar: n("sidecar?", 0, 1) == 1})
	}
	for i := n("apps", 1, 4); i > 0; i-- {
		p.Containers = append(p.Containers, pod.Container{Name: "a" + string(rune('0'+i))})
	}
	if n("asked?", 0, 1) == 1 {
		for i := range p.InitContainers {
			if p.InitContainers[i].Sidecar {
				drawProbesAndHooks(n, &p.InitContainers[i])
			}
		}
		for i := range p.Containers {
			drawProbesAndHooks(n, &p.Containers[i])
		}
		drawPriority(n, p)
	}
	if n("rules?", 0, 3) == 0 {
		drawRules(n, p)
	}
	return p
}

// replay applies the journal again. The result must be the same, which shows that only events change
// Observed; and it must survive JSON.
func (f *fake) replay() {
	var again, read Observed
	for _, e := range f.journal {
		again.Apply(f.plan, e)
	}
	if diff := cmp.Diff(f.seen, again); diff != "" {
		f.Fatalf("the journal replays to something else:\n%s", diff)
	}
	text, err := json.Marshal(&f.seen)
	if err != nil {
		f.Fatal(err)
	}
	if err := json.Unmarshal(text, &read); err != nil {
		f.Fatal(err)
	}
	if diff := cmp.Diff(f.seen, read); diff != "" {
		f.Fatalf("JSON loses something:\n%s", diff)
	}
}

func TestApplyToleratesAnything(t *testing.T) {
	kinds := []EventKind{Issued, SandboxReady, SandboxFailed, SandboxKilled, SandboxRemoved, VolumesFailed, ObjectChanged, Restored, Started, StartFailed, Exited, StopRequested, Probed, Hooked, Recovered, ConditionSet, PauseRequested, UnpauseRequested, Frozen, Thawed, "", "unheard"}
	actions := []ActionKind{CreateSandbox, StartContainer, StopContainer, KillContainer, RemoveSandbox, RunProbe, RunHook, FreezeSandbox, ThawSandbox, "", "unheard"}
	rapid.Check(t, func(t *rapid.T) {
		plan := drawPlan(t)
		var o Observed
		n := func(label string, low, high int) int { return rapid.IntRange(low, high).Draw(t, label) }
		name := func() string { return []string{"", "i1", "i2", "a1", "a2", "nobody"}[n("name", 0, 5)] }
		for i := n("events", 0, 30); i > 0; i-- {
			now := Now{Boot: time.Duration(n("boot", 0, 1000)) * time.Second, Wall: wallBegin}
			e := Event{At: now, Kind: kinds[n("kind", 0, len(kinds)-1)], Container: name(), Attempt: n("attempt", -1, 2), Seed: uint64(n("seed", 0, 3))}
			e.Probe = []ProbeKind{"", Startup, Liveness, Readiness, "unheard"}[n("probe", 0, 4)]
			e.Hook = []HookKind{"", PostStart, PreStop, "unheard"}[n("hook", 0, 3)]
			e.Outcome = []Outcome{"", Success, Failure, Unknown, "unheard"}[n("outcome", 0, 4)]
			if n("action?", 0, 3) > 0 {
				e.Action = &Action{Kind: actions[n("action", 0, len(actions)-1)], Container: name(), Attempt: n("attempt", -1, 2), Probe: e.Probe, Hook: e.Hook}
			}
			o.Apply(plan, e)
			Decide(plan, &o, now)
			Status(plan, &o, now)
		}
	})
}
