package lifecycle

import (
	"testing"
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// TestEphemeral: an ephemeral container starts once, beside all other containers; the pod's phase
// and end do not wait for it, and it ends with the pod.
func TestEphemeral(t *testing.T) {
	plan := &pod.Plan{
		Name: "p", RestartPolicy: pod.RestartAlways, GraceSeconds: 5,
		InitContainers: []pod.Container{{Name: "i"}}, Containers: []pod.Container{{Name: "a"}},
	}
	o := &Observed{}
	boot := time.Second
	clock := func() Now {
		boot += time.Second
		return Now{Boot: boot, Wall: time.Unix(0, 0).Add(boot)}
	}
	decide := func(want ...string) {
		t.Helper()
		now := clock()
		d := Decide(plan, o, now)
		var got []string
		for _, a := range d.Actions {
			got = append(got, string(a.Kind)+" "+a.Container)
			o.Apply(plan, Event{At: now, Kind: Issued, Action: &a})
		}
		if len(got) != len(want) {
			t.Fatalf("%q, want %q", got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%q, want %q", got, want)
			}
		}
	}
	decide(string(CreateSandbox) + " ")
	o.Apply(plan, Event{At: clock(), Kind: SandboxReady})
	decide(string(StartContainer) + " i")
	next := *plan
	next.Ephemeral = []pod.Container{{Name: "e", RestartPolicy: pod.RestartNever}}
	plan = &next
	decide(string(StartContainer) + " e")
	o.Apply(plan, Event{At: clock(), Kind: Started, Container: "i", ContainerID: "i"})
	o.Apply(plan, Event{At: clock(), Kind: Started, Container: "e", ContainerID: "e"})
	if st := Status(plan, o, clock()); st.Phase != pod.Pending || len(st.Ephemeral) != 1 || st.Ephemeral[0].State.Running == nil || st.Ephemeral[0].Ready {
		t.Errorf("%+v", st)
	}
	o.Apply(plan, Event{At: clock(), Kind: Exited, Container: "i"})
	decide(string(StartContainer) + " a")
	o.Apply(plan, Event{At: clock(), Kind: Started, Container: "a", ContainerID: "a"})
	o.Apply(plan, Event{At: clock(), Kind: Exited, Container: "e", ExitCode: 3})
	decide()
	if st := Status(plan, o, clock()); st.Phase != pod.Running || st.Ephemeral[0].State.Terminated == nil || st.Ephemeral[0].RestartCount != 0 {
		t.Errorf("%+v", st)
	}
	more := *plan
	more.Ephemeral = append(more.Ephemeral, pod.Container{Name: "f", RestartPolicy: pod.RestartNever})
	plan = &more
	decide(string(StartContainer) + " f")
	o.Apply(plan, Event{At: clock(), Kind: Started, Container: "f", ContainerID: "f"})
	o.Apply(plan, Event{At: clock(), Kind: StopRequested})
	decide(string(StopContainer)+" a", string(StopContainer)+" f")
	o.Apply(plan, Event{At: clock(), Kind: Exited, Container: "a"})
	decide()
	o.Apply(plan, Event{At: clock(), Kind: Exited, Container: "f", ExitCode: 143})
	decide(string(RemoveSandbox) + " ")
}
