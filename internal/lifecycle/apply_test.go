package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/pod"
)

// TestApplyIntents covers intents in an order that Decide does not produce, but that an old journal
// may contain.
func TestApplyIntents(t *testing.T) {
	plan := &pod.Plan{RestartPolicy: pod.RestartAlways, GraceSeconds: 30, Containers: []pod.Container{{Name: "a"}}}
	moment := func(s int) Now { return Now{Boot: time.Duration(s) * time.Second, Wall: wallBegin} }
	intent := func(s int, kind ActionKind, attempt int) Event {
		return Event{At: moment(s), Kind: Issued, Action: &Action{Kind: kind, Container: "a", Attempt: attempt}}
	}
	seen := func(s int, kind EventKind, attempt int) Event {
		return Event{At: moment(s), Kind: kind, Container: "a", Attempt: attempt}
	}
	begin := []Event{
		{At: moment(0), Kind: Issued, Action: &Action{Kind: CreateSandbox}}, {At: moment(0), Kind: SandboxReady},
		intent(1, StartContainer, 0),
	}
	for _, c := range []struct {
		name   string
		events []Event
		now    int
		want   []Action
	}{
		{"a stop signal to a container still starting is sent again when it runs",
			[]Event{{At: moment(2), Kind: StopRequested}, intent(2, StopContainer, 0), seen(3, Started, 0)},
			3, []Action{{Kind: StopContainer, Container: "a"}}},
		{"a stop signal that is repeated gives no new time",
			[]Event{seen(2, Started, 0), {At: moment(3), Kind: StopRequested}, intent(3, StopContainer, 0), intent(32, StopContainer, 0)},
			33, []Action{{Kind: KillContainer, Container: "a"}}},
		{"a start that is repeated is not a new run",
			[]Event{seen(2, Started, 0), seen(3, Exited, 0), intent(3, StartContainer, 0)},
			3, []Action{{Kind: StartContainer, Container: "a", Attempt: 1}}},
		{"a start while the container runs is none",
			[]Event{seen(2, Started, 0), intent(3, StartContainer, 1), {At: moment(3), Kind: StopRequested}},
			3, []Action{{Kind: StopContainer, Container: "a"}}},
		{"a sandbox that is gone unasked is made again",
			[]Event{seen(2, Started, 0), {At: moment(3), Kind: SandboxRemoved}},
			3, []Action{{Kind: CreateSandbox, Attempt: 1}}},
		{"what became of an earlier sandbox says nothing of this one",
			[]Event{seen(2, Started, 0), {At: moment(3), Kind: SandboxKilled, Attempt: 1}},
			3, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var o Observed
			for _, e := range append(begin[:len(begin):len(begin)], c.events...) {
				o.Apply(plan, e)
			}
			if diff := cmp.Diff(c.want, Decide(plan, &o, moment(c.now)).Actions); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
		})
	}
}
