package lifecycle

import (
	"testing"
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// TestAKilledContainerIsNotProbed: the decision that kills a container issues no probe or hook for
// it.
func TestAKilledContainerIsNotProbed(t *testing.T) {
	plan := &pod.Plan{Containers: []pod.Container{{Name: "a", Readiness: &pod.Probe{PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 1}}}}
	now := Now{Boot: time.Minute}
	var o Observed
	for _, e := range []Event{
		{Kind: Issued, Action: &Action{Kind: CreateSandbox}},
		{Kind: SandboxReady},
		{Kind: Issued, Action: &Action{Kind: StartContainer, Container: "a"}},
		{Kind: Started, Container: "a"},
	} {
		e.At = now
		o.Apply(plan, e)
	}
	kinds := func() (all []ActionKind) {
		for _, a := range Decide(plan, &o, now).Actions {
			all = append(all, a.Kind)
		}
		return all
	}
	if got := kinds(); len(got) != 1 || got[0] != RunProbe {
		t.Fatalf("while it runs: %v, want a probe", got)
	}
	o.Containers["a"].Kill = &Kill{Since: now, GraceEnd: now.Boot, AtOnce: true}
	if got := kinds(); len(got) != 1 || got[0] != KillContainer {
		t.Errorf("once it is to be killed: %v, want that and nothing else", got)
	}
}
