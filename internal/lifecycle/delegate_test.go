package lifecycle

import (
	"fmt"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// TestDelegate covers which probes another process may run, and when the supervisor must decide again meanwhile.
func TestDelegate(t *testing.T) {
	const now = 100 * time.Second
	steady := ProbeRun{Next: now + time.Second, Last: Success, InARow: 1, Result: Success}
	cases := map[string]struct {
		change func(*pod.Plan, *Observed)
		want   string
	}{
		"a probe that succeeds": {want: "a readiness 1s every 1s"},
		"it is overdue": {
			change: func(_ *pod.Plan, o *Observed) { o.Containers["a"].Readiness.Next = now - 3*time.Second },
			want:   "a readiness -3s every 1s",
		},
		"its command runs": {change: func(_ *pod.Plan, o *Observed) { o.Containers["a"].Readiness.UnderWay = true }, want: "busy"},
		"it has not run yet": {
			change: func(_ *pod.Plan, o *Observed) { o.Containers["a"].Readiness = ProbeRun{} }, want: "busy",
		},
		"it has failed once": {
			change: func(_ *pod.Plan, o *Observed) { o.Containers["a"].Readiness.Last = Failure }, want: "wake 1s",
		},
		"it fails": {
			change: func(_ *pod.Plan, o *Observed) {
				o.Containers["a"].Readiness.Last, o.Containers["a"].Readiness.Result = Failure, Failure
			},
			want: "wake 1s",
		},
		"it must succeed twice": {
			change: func(p *pod.Plan, _ *Observed) { p.Containers[0].Readiness.SuccessThreshold = 2 }, want: "wake 1s",
		},
		"it is of the wrong kind": {
			change: func(p *pod.Plan, _ *Observed) { p.Containers[0].Readiness.GRPC = &pod.GRPC{} }, want: "wake 1s",
		},
		"another one is of the wrong kind": {
			change: func(p *pod.Plan, o *Observed) {
				p.Containers[0].Liveness = &pod.Probe{Handler: pod.Handler{GRPC: &pod.GRPC{}}, PeriodSeconds: 60}
				o.Containers["a"].Liveness = steady
				o.Containers["a"].Liveness.Next = now + 50*time.Second
			},
			want: "a readiness 1s every 1s wake 50s",
		},
		"two succeed": {
			change: func(p *pod.Plan, o *Observed) {
				p.Containers[0].Liveness, o.Containers["a"].Liveness = &pod.Probe{}, steady
			},
			want: "a liveness 1s every 1s a readiness 1s every 1s",
		},
		"the startup probe has not succeeded": {
			change: func(p *pod.Plan, o *Observed) {
				p.Containers[0].Startup = &pod.Probe{PeriodSeconds: 1, FailureThreshold: 9}
				o.Containers["a"].Startup = ProbeRun{Next: now + 2*time.Second, Last: Failure, InARow: 1}
			},
			want: "wake 2s",
		},
		"the pod has a deadline": {
			change: func(p *pod.Plan, o *Observed) {
				p.ActiveDeadlineSeconds, o.StartTime = 30, &Now{Boot: now - 10*time.Second}
			},
			want: "a readiness 1s every 1s wake 20s",
		},
		"the pod is paused": {change: func(_ *pod.Plan, o *Observed) { o.Pause.State = PauseOn }},
		"the container is being stopped": {
			change: func(_ *pod.Plan, o *Observed) {
				issued := now
				o.Containers["a"].Kill, o.Containers["a"].StopIssued = &Kill{GraceEnd: now + 9*time.Second}, &issued
			},
			want: "wake 1s",
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			plan := &pod.Plan{RestartPolicy: pod.RestartAlways, Containers: []pod.Container{{Name: "a", Readiness: &pod.Probe{PeriodSeconds: 1}}}}
			observed := &Observed{Sandbox: SandboxUp, StartTime: &Now{}, Containers: map[string]*Container{"a": {State: RunRunning, Readiness: steady}}}
			if test.change != nil {
				test.change(plan, observed)
			}
			left, ok := Delegate(plan, observed, Now{Boot: now}, func(c *pod.Container, kind ProbeKind) bool { return PlannedProbe(c, kind).GRPC == nil })
			got := ""
			for _, p := range left.Probes {
				got += fmt.Sprintf(" %s %s %v every %v", p.Container, p.Kind, p.Next-now, p.Period)
			}
			if left.Wake > 0 {
				got += fmt.Sprintf(" wake %v", left.Wake-now)
			}
			if !ok {
				got = " busy"
			}
			if got != "" && got[1:] != test.want || got == "" && test.want != "" {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// A probe's next run is due a period after the latest success of another process; one without success is due when
// it was before. Results stay.
func TestApplyDelegated(t *testing.T) {
	steady := ProbeRun{Next: 5 * time.Second, Last: Success, InARow: 1, Result: Success}
	plan := &pod.Plan{Containers: []pod.Container{{Name: "a", Readiness: &pod.Probe{PeriodSeconds: 10}, Liveness: &pod.Probe{PeriodSeconds: 10}}}}
	observed := &Observed{Sandbox: SandboxUp, StartTime: &Now{}, Containers: map[string]*Container{"a": {State: RunRunning, Attempt: 3, Readiness: steady, Liveness: steady}}}
	probes := []SteadyProbe{{Container: "a", Attempt: 3, Kind: Readiness}, {Container: "a", Attempt: 3, Kind: Liveness}, {Container: "a", Attempt: 2, Kind: Liveness}}
	observed.ApplyDelegated(plan, probes, []time.Duration{42 * time.Second, 0, 50 * time.Second})
	want := steady
	want.Next = 52 * time.Second
	if c := observed.Containers["a"]; c.Readiness != want || c.Liveness != steady {
		t.Errorf("readiness %+v, liveness %+v", c.Readiness, c.Liveness)
	}
}
