package runner

import (
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
)

func TestApplyRefusesAnotherPodsPlan(t *testing.T) {
	of := func(change func(*pod.Plan)) *pod.Plan {
		p := &pod.Plan{Version: pod.PlanVersion, UID: "u", InitContainers: []pod.Container{{Name: "i"}}, Containers: []pod.Container{{Name: "a"}, {Name: "b"}}}
		change(p)
		return p
	}
	same := of(func(*pod.Plan) {})
	for name, tt := range map[string]struct {
		next *pod.Plan
		want string
	}{
		"resources and a revision": {of(func(p *pod.Plan) { p.Resources.CPULimit, p.Containers[0].Revision = 1, 1 }), ""},
		"another uid":              {of(func(p *pod.Plan) { p.UID = "v" }), "it belongs to another pod"},
		"a container less":         {of(func(p *pod.Plan) { p.Containers = p.Containers[:1] }), "it belongs to another pod"},
		"another order":            {of(func(p *pod.Plan) { p.Containers[0].Name, p.Containers[1].Name = "b", "a" }), "it belongs to another pod"},
		"a sidecar now":            {of(func(p *pod.Plan) { p.InitContainers[0].Sidecar = true }), "it belongs to another pod"},
		"a newer podrun's":         {of(func(p *pod.Plan) { p.Version++ }), "newer podrun"},
	} {
		err := checkSamePod(same, tt.next)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Until the loop takes the new Plan, it acts by the old one; a further apply is based on the new one.
func TestApplyRecordsAndWaitsForTheLoop(t *testing.T) {
	place := store.Dirs{Data: t.TempDir(), Runtime: t.TempDir()}.Pod("default", "web")
	plan := &pod.Plan{Version: pod.PlanVersion, UID: "u", Containers: []pod.Container{{Name: "a"}}}
	if err := place.Create(plan, []byte("old")); err != nil {
		t.Fatal(err)
	}
	e := testEngine(plan, place)
	next := *plan
	next.Resources.CPULimit = 500
	if err := e.applyPlan(&next, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if e.currentPlan() != plan || e.latestPlan() != &next {
		t.Error("the loop has the new plan before it has asked for it")
	}
	if ev := <-e.Events(); ev.Kind != lifecycle.Replanned {
		t.Errorf("the loop is told %q", ev.Kind)
	}
	if e.takeLatestPlan() != &next || e.currentPlan() != &next || e.latestPlan() != &next {
		t.Error("the loop does not have the new plan")
	}
	stored, err := place.Plan()
	if err != nil || stored.Resources.CPULimit != 500 {
		t.Errorf("recorded: %+v, %v", stored, err)
	}
	if text, err := place.Manifest(); err != nil || string(text) != "new" {
		t.Errorf("recorded: %q, %v", text, err)
	}
}
