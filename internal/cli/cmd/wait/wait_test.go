package wait

import (
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/wire"
)

// TestParseWaitCondition: the forms of kubectl wait --for, and the statuses that meet each.
func TestParseWaitCondition(t *testing.T) {
	ready := &pod.Status{Phase: pod.Running, Conditions: []pod.Condition{{Type: "Ready", Status: "True"}}}
	failed := &pod.Status{Phase: pod.Failed, Conditions: []pod.Condition{{Type: "Ready", Status: "False"}}}
	for text, want := range map[string]struct{ ready, failed, phase bool }{
		"condition=Ready":       {true, false, false},
		"condition=ready":       {true, false, false},
		"Condition=Ready=False": {false, true, false},
		"condition=Ready=false": {false, true, false},
		"condition=Other":       {false, false, false},
		"phase=Failed":          {false, true, true},
	} {
		c, err := parseWaitCondition(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if c.met(ready) != want.ready || c.met(failed) != want.failed || c.phase != want.phase || c.gone || c.text != text {
			t.Errorf("%s: %t, %t, %+v", text, c.met(ready), c.met(failed), c)
		}
	}
	if c, err := parseWaitCondition("delete"); err != nil || !c.gone {
		t.Errorf("delete: %+v, %v", c, err)
	}
	if c, err := parseWaitCondition("create"); err != nil || !c.created {
		t.Errorf("create: %+v, %v", c, err)
	}
	for text, spec := range map[string]bool{"jsonpath='{.status.phase}'=Running": false, "jsonpath=status.phase": false, "jsonpath={.metadata.labels.a}": true} {
		if c, err := parseWaitCondition(text); err != nil || c.met != nil || c.object == nil || c.spec != spec {
			t.Errorf("%s: %+v, %v", text, c, err)
		}
	}
	for text, want := range map[string]string{
		"":                  "unrecognized condition",
		"Ready":             "unrecognized condition",
		"condition=":        "unrecognized condition",
		"condition=Ready=":  "unrecognized condition",
		"delete=now":        "unrecognized condition",
		"phase=running":     `a pod's phase must be Pending, Running, Succeeded or Failed, not "running"`,
		"jsonpath=":         "jsonpath wait format must be",
		"jsonpath={.a}=1=2": "jsonpath wait format must be",
		"jsonpath={.a}=":    "jsonpath wait has to have a value",
	} {
		if _, err := parseWaitCondition(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestForKind: without --for, Deployments are to be Available and Jobs Complete.
func TestForKind(t *testing.T) {
	implied := waitCondition{text: "condition=Ready", implied: true}
	for kind, want := range map[pod.ObjectKind]string{pod.KindDeployment: "Available", pod.KindJob: "Complete"} {
		c := implied.forKind(kind)
		if c.text != "condition="+want || !c.met(&pod.Status{Conditions: []pod.Condition{{Type: want, Status: "True"}}}) {
			t.Errorf("%s: %s", kind, c.text)
		}
	}
	if c := (waitCondition{text: "delete", gone: true}).forKind(pod.KindJob); c.text != "delete" {
		t.Errorf("--for=delete became %s", c.text)
	}
}

// TestCheckKinds: which conditions objects of a kind can have.
func TestCheckKinds(t *testing.T) {
	implied, phase := waitCondition{implied: true}, waitCondition{phase: true}
	for _, tt := range []struct {
		kind pod.ObjectKind
		goal waitCondition
		want string
	}{
		{pod.KindDeployment, implied, ""},
		{pod.KindStatefulSet, implied, "is neither a pod, a deployment nor a job: set --for"},
		{pod.KindStatefulSet, waitCondition{}, ""},
		{"", implied, ""},
		{"", phase, ""},
		{pod.KindJob, phase, "only pods have phases"},
	} {
		o := options{goal: tt.goal}
		if err := o.checkKinds([]kindnames.ObjectRef{{Kind: tt.kind, Name: "w"}}); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s, %+v: %v", tt.kind, tt.goal, err)
		}
	}
}

// TestLimit: 0 checks once, a negative time is a week, as in kubectl.
func TestLimit(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{time.Minute: time.Minute, -1: 7 * 24 * time.Hour, 0: checkTime} {
		if got := (&options{timeout: timeout}).limit(); got != want {
			t.Errorf("%v: %v, want %v", timeout, got, want)
		}
	}
}

func TestValidateConditions(t *testing.T) {
	for word, want := range map[string]string{
		"example.com/open=True": "", "warm=Unknown": "", "a b=True": "is not a valid condition type", "open": `must be True, False or Unknown, not ""`, "open=true": "must be True, False or Unknown",
	} {
		o := &setOptions{}
		kind, status, _ := strings.Cut(word, "=")
		o.wanted = append(o.wanted, wire.ConditionRequest{Type: kind, Status: status})
		if err := o.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", word, err, want)
		}
	}
	if err := (&setOptions{}).Validate(); err == nil {
		t.Error("nothing is set")
	}
}
