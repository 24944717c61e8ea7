package lifecycle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// TestPrepare covers what is prepared in given states of the containers.
func TestPrepare(t *testing.T) {
	running := func() *Container { return &Container{State: RunRunning} }
	done := func() *Container { return &Container{State: RunEnded, End: &pod.Terminated{}} }
	backoff := func(left time.Duration) *Container {
		return &Container{State: RunEnded, Attempt: 1, End: &pod.Terminated{ExitCode: 1}, Issued: Now{Boot: 99 * time.Second}, Ended: 100*time.Second + left - backoffBase, Backoff: backoffBase}
	}
	creating := func(_ *pod.Plan, o *Observed) { o.Sandbox = SandboxCreating }
	cases := map[string]struct {
		change func(*pod.Plan, *Observed)
		seen   map[string]*Container
		want   string
	}{
		"nothing runs yet":    {want: ""},
		"the sandbox is made": {change: creating, want: "i1-0 | i2-0 a-0 b-0"},
		"a sandbox without init containers is made": {
			change: func(p *pod.Plan, o *Observed) { creating(p, o); p.InitContainers = nil }, want: "a-0 b-0 |",
		},
		"another sandbox is made": {
			change: creating, seen: map[string]*Container{"i1": done(), "i2": done(), "a": backoff(0), "b": backoff(5 * time.Second)}, want: "a-2 | wake 5s",
		},
		"a sandbox is made for a pod that ends": {change: func(p *pod.Plan, o *Observed) { creating(p, o); o.Ending = &Ending{} }},
		"the first init container is started":   {seen: map[string]*Container{"i1": {State: RunStarting}}, want: "i2-0 a-0 b-0"},
		"the pod may not use a whole processor": {change: func(p *pod.Plan, o *Observed) { creating(p, o); p.Resources.CPULimit = 500 }, want: "i1-0 |"},
		"the first init container is started without a whole processor": {
			change: func(p *pod.Plan, _ *Observed) { p.Resources.CPULimit = 500 }, seen: map[string]*Container{"i1": {State: RunStarting}},
		},
		"the first init container runs without a whole processor": {
			change: func(p *pod.Plan, _ *Observed) { p.Resources.CPULimit = 500 }, seen: map[string]*Container{"i1": running()}, want: "i2-0 a-0 b-0",
		},
		"the first init container runs":         {seen: map[string]*Container{"i1": running()}, want: "i2-0 a-0 b-0"},
		"the last init container runs":          {seen: map[string]*Container{"i1": done(), "i2": running()}, want: "a-0 b-0"},
		"all run":                               {seen: map[string]*Container{"i1": done(), "i2": done(), "a": running(), "b": running()}},
		"an init container waits for long":      {seen: map[string]*Container{"i1": backoff(5 * time.Second)}, want: "wake 3s"},
		"an init container is about to restart": {seen: map[string]*Container{"i1": backoff(time.Second)}, want: "i1-2"},
		"an app waits for long":                 {seen: map[string]*Container{"i1": done(), "i2": done(), "a": running(), "b": backoff(9 * time.Second)}, want: "wake 7s"},
		"an app is about to restart":            {seen: map[string]*Container{"i1": done(), "i2": done(), "a": running(), "b": backoff(2 * time.Second)}, want: "b-2"},
		"an app's back-off is over":             {seen: map[string]*Container{"i1": done(), "i2": done(), "a": running(), "b": backoff(0)}},
		"an app will not run again": {
			change: func(p *pod.Plan, _ *Observed) { p.RestartPolicy = pod.RestartNever },
			seen:   map[string]*Container{"i1": done(), "i2": done(), "a": running(), "b": backoff(time.Second)},
		},
		"a postStart hook holds back the rest": {
			change: func(p *pod.Plan, _ *Observed) { p.Containers[0].PostStart = &pod.Handler{} },
			seen:   map[string]*Container{"i1": done(), "i2": running()}, want: "a-0",
		},
		"a higher priority comes first": {
			change: func(p *pod.Plan, _ *Observed) { p.Containers[1].Priority = 1 },
			seen:   map[string]*Container{"i1": done(), "i2": running()}, want: "b-0",
		},
		"the pod is paused": {
			change: func(_ *pod.Plan, o *Observed) { o.Pause.State = PausePending },
			seen:   map[string]*Container{"i1": running()},
		},
		"the pod ends": {
			change: func(_ *pod.Plan, o *Observed) { o.Ending = &Ending{} },
			seen:   map[string]*Container{"i1": running()},
		},
		"the sandbox is lost": {
			change: func(_ *pod.Plan, o *Observed) { o.Sandbox = SandboxBroken },
			seen:   map[string]*Container{"i1": running()},
		},
		"all begins again": {
			change: func(_ *pod.Plan, o *Observed) { o.Restarting = true },
			seen:   map[string]*Container{"i1": running()},
		},
		"the pod's memory has room for the first": {
			change: func(p *pod.Plan, o *Observed) {
				creating(p, o)
				p.Resources.MemoryLimit, p.InitContainers[0].Resources.MemoryLimit = 64<<20, 60<<20
			},
			want: "i1-0 |",
		},
		"the pod's memory has no room": {
			change: func(p *pod.Plan, _ *Observed) {
				p.Resources.MemoryLimit, p.InitContainers[0].Resources.MemoryLimit = 64<<20, 60<<20
			},
			seen: map[string]*Container{"i1": running()},
		},
		"the pod's memory has room for one": {
			change: func(p *pod.Plan, _ *Observed) {
				p.Resources.MemoryLimit, p.InitContainers[1].Resources.MemoryLimit = 64<<20, 50<<20
			},
			seen: map[string]*Container{"i1": done(), "i2": running()}, want: "a-0",
		},
		"what runs may take all memory": {
			change: func(p *pod.Plan, _ *Observed) { p.Resources.MemoryLimit = 64 << 20 },
			seen:   map[string]*Container{"i1": running()},
		},
	}
	for name, c := range cases {
		plan := &pod.Plan{RestartPolicy: pod.RestartAlways, InitContainers: []pod.Container{{Name: "i1"}, {Name: "i2"}}, Containers: []pod.Container{{Name: "a"}, {Name: "b"}}}
		o := &Observed{Sandbox: SandboxUp, Containers: c.seen}
		if c.change != nil {
			c.change(plan, o)
		}
		got := Prepare(plan, o, Now{Boot: 100 * time.Second})
		var words []string
		for i, a := range got.Starts {
			words = append(words, fmt.Sprintf("%s-%d", a.Container, a.Attempt))
			if i == got.First-1 { // "|" is after those that are the first in the sandbox
				words = append(words, "|")
			}
		}
		if got.Wake > 0 {
			words = append(words, fmt.Sprint("wake ", got.Wake-100*time.Second))
		}
		if said := strings.Join(words, " "); said != c.want {
			t.Errorf("%s: %q, want %q", name, said, c.want)
		}
	}
}

// TestPrepareNotTooMany: the number of prepared containers is limited.
func TestPrepareNotTooMany(t *testing.T) {
	plan := &pod.Plan{InitContainers: []pod.Container{{Name: "i"}}}
	for i := range 20 {
		plan.Containers = append(plan.Containers, pod.Container{Name: fmt.Sprint("a", i)})
	}
	o := &Observed{Sandbox: SandboxUp, Containers: map[string]*Container{"i": {State: RunRunning}}}
	if got := Prepare(plan, &Observed{Sandbox: SandboxCreating}, Now{}); len(got.Starts) != maxPrepared || got.First != 1 {
		t.Errorf("%d are prepared while the sandbox is made, %d of them first", len(got.Starts), got.First)
	}
	if got := Prepare(plan, o, Now{Boot: time.Second}); len(got.Starts) != maxPrepared || cap(got.Starts) != maxPrepared {
		t.Errorf("%d are prepared", len(got.Starts))
	}
}
