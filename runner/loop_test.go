package runner

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/pod"
)

// fakeKernel answers every action at once, and lets each container run as its behaviour defines.
type fakeKernel struct {
	began  time.Time
	events chan lifecycle.Event
	behave map[string]behaviour
	done   []string // the actions, as text
	cancel map[string]chan int
}

// behaviour of a container: it exits with code after the time for. With for == 0 it runs until it is
// stopped.
type behaviour struct {
	after time.Duration
	code  int
	fails string // error of a start that never succeeds
	deaf  bool   // the stop signal does not end it
}

func newFakeKernel(behave map[string]behaviour) *fakeKernel {
	return &fakeKernel{began: time.Now(), events: make(chan lifecycle.Event, 64), behave: behave, cancel: map[string]chan int{}}
}

func (k *fakeKernel) now() lifecycle.Now {
	// A board's clock: 1970 by the wall clock, three seconds since boot.
	since := time.Since(k.began)
	return lifecycle.Now{Boot: 3*time.Second + since, Wall: time.Unix(0, 0).UTC().Add(since)}
}

func (k *fakeKernel) Save(*lifecycle.Observed) {}

func (k *fakeKernel) Events() <-chan lifecycle.Event { return k.events }

func (k *fakeKernel) emit(e lifecycle.Event) {
	e.At = k.now()
	k.events <- e
}

func (k *fakeKernel) Do(a lifecycle.Action) {
	k.done = append(k.done, fmt.Sprintf("%s %s %d", a.Kind, a.Container, a.Attempt))
	switch a.Kind {
	case lifecycle.CreateSandbox:
		k.emit(lifecycle.Event{Kind: lifecycle.SandboxReady})
	case lifecycle.RemoveSandbox:
		k.emit(lifecycle.Event{Kind: lifecycle.SandboxRemoved})
	case lifecycle.StartContainer:
		k.start(a)
	case lifecycle.StopContainer:
		if !k.behave[a.Container].deaf {
			k.cancel[a.Container] <- 143
		}
	case lifecycle.KillContainer:
		k.cancel[a.Container] <- 137
	}
}

func (k *fakeKernel) start(a lifecycle.Action) {
	b := k.behave[a.Container]
	if b.fails != "" {
		k.emit(lifecycle.Event{Kind: lifecycle.StartFailed, Container: a.Container, Attempt: a.Attempt, Reason: "StartError", ExitCode: 127, Message: b.fails})
		return
	}
	stop := make(chan int, 2)
	k.cancel[a.Container] = stop
	k.emit(lifecycle.Event{Kind: lifecycle.Started, Container: a.Container, Attempt: a.Attempt, ContainerID: a.Container})
	go func() {
		var end <-chan time.Time
		if b.after > 0 {
			end = time.After(b.after)
		}
		code := b.code
		select {
		case <-end:
		case code = <-stop:
		}
		k.emit(lifecycle.Event{Kind: lifecycle.Exited, Container: a.Container, Attempt: a.Attempt, ExitCode: code})
	}()
}

func testPlan(policy pod.RestartPolicy, inits, apps []string) *pod.Plan {
	p := &pod.Plan{Version: pod.PlanVersion, Namespace: "default", Name: "p", UID: "u", RestartPolicy: policy, GraceSeconds: 30}
	for _, n := range inits {
		p.InitContainers = append(p.InitContainers, pod.Container{Name: n})
	}
	for _, n := range apps {
		p.Containers = append(p.Containers, pod.Container{Name: n})
	}
	return p
}

func runLoop(t *testing.T, plan *pod.Plan, k *fakeKernel) (*pod.Status, []pod.Status) {
	t.Helper()
	var statuses []pod.Status
	l := loop{plan: plan, executor: k, now: k.now, publish: func(st *pod.Status) { statuses = append(statuses, *st) }}
	return l.run(), statuses
}

func TestLoopRunsInitsInOrderThenAppsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKernel(map[string]behaviour{
			"i1": {after: time.Second}, "i2": {after: time.Second}, "a": {after: time.Second}, "b": {after: time.Second},
		})
		final, statuses := runLoop(t, testPlan(pod.RestartNever, []string{"i1", "i2"}, []string{"a", "b"}), k)
		want := []string{
			"createSandbox  0", "startContainer i1 0", "startContainer i2 0",
			"startContainer a 0", "startContainer b 0", "removeSandbox  0",
		}
		if !slices.Equal(k.done, want) {
			t.Errorf("actions %q, want %q", k.done, want)
		}
		if final.Phase != pod.Succeeded {
			t.Errorf("phase %s, want Succeeded", final.Phase)
		}
		if elapsed := time.Since(k.began); elapsed != 3*time.Second {
			t.Errorf("two inits and two parallel apps of 1 s took %v, want 3 s", elapsed)
		}
		for i := 1; i < len(statuses); i++ {
			if statuses[i].Phase == pod.Pending && statuses[i-1].Phase != pod.Pending {
				t.Errorf("phase went back to Pending from %s", statuses[i-1].Phase)
			}
		}
	})
}

func TestLoopStopsGracefullyAndKillsTheDeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKernel(map[string]behaviour{"good": {}, "deaf": {deaf: true}})
		go func() {
			time.Sleep(time.Minute)
			grace := int64(10)
			k.emit(lifecycle.Event{Kind: lifecycle.StopRequested, GraceSeconds: &grace})
		}()
		final, _ := runLoop(t, testPlan(pod.RestartAlways, nil, []string{"good", "deaf"}), k)
		want := []string{
			"createSandbox  0", "startContainer good 0", "startContainer deaf 0",
			"stopContainer good 0", "stopContainer deaf 0", "killContainer deaf 0", "removeSandbox  0",
		}
		if !slices.Equal(k.done, want) {
			t.Errorf("actions %q, want %q", k.done, want)
		}
		if elapsed := time.Since(k.began); elapsed != 70*time.Second {
			t.Errorf("the pod ended after %v, want a minute and 10 s of grace", elapsed)
		}
		if !final.Deleting || final.Containers[1].State.Terminated == nil || final.Containers[1].State.Terminated.ExitCode != 137 {
			t.Errorf("final status %+v", final)
		}
	})
}

// In an hour of crash loop the loop restarts at 0, 10, 20, 40, 80, 160 and then every 300 s, and publishes
// a status only when something has changed.
func TestLoopCrashLoopForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKernel(map[string]behaviour{"a": {after: time.Millisecond, code: 1}})
		go func() {
			time.Sleep(time.Hour)
			k.emit(lifecycle.Event{Kind: lifecycle.StopRequested})
		}()
		_, statuses := runLoop(t, testPlan(pod.RestartAlways, nil, []string{"a"}), k)
		starts := 0
		for _, a := range k.done {
			if a[:5] == "start" {
				starts++
			}
		}
		// 1 + 1 (at once) + 10, 20, 40, 80, 160 s, then (3600-310)/300 = 10.
		if starts != 17 {
			t.Errorf("%d starts in an hour, want 17", starts)
		}
		if len(statuses) > 4*starts+4 {
			t.Errorf("%d statuses for %d starts", len(statuses), starts)
		}
	})
}

func TestLoopEndsWhenTheSandboxCannotBeMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKernel(nil)
		l := loop{plan: testPlan(pod.RestartAlways, nil, []string{"a"}), executor: lostSandbox{k}, now: k.now, publish: func(*pod.Status) {}}
		if st := l.run(); st.Phase != pod.Failed || st.Message == "" {
			t.Errorf("status %+v, want Failed with a message", st)
		}
	})
}

// lostSandbox is a kernel without a sandbox.
type lostSandbox struct{ *fakeKernel }

func (k lostSandbox) Do(a lifecycle.Action) {
	if a.Kind != lifecycle.CreateSandbox {
		panic("an action without a sandbox: " + a.Kind)
	}
	k.emit(lifecycle.Event{Kind: lifecycle.SandboxFailed, Message: "no overlay here"})
}

// A loop that recovers a pod publishes a status at once, even if it only starts a probe and nothing else
// happens: clients wait for a status.
func TestLoopThatGoesOnSaysHowItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKernel(map[string]behaviour{"a": {after: time.Minute}})
		plan := testPlan(pod.RestartNever, nil, []string{"a"})
		plan.Containers[0].Readiness = &pod.Probe{PeriodSeconds: 10, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3}
		killed := loop{plan: plan, executor: k, now: k.now}
		killed.publish = func(st *pod.Status) {
			if strings.HasPrefix(k.done[len(k.done)-1], string(lifecycle.RunProbe)) {
				runtime.Goexit()
			}
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			killed.run()
		}()
		<-ended
		asked := len(k.done)
		rounds, first := 0, 0
		l := loop{plan: plan, executor: k, observed: killed.observed, publish: func(*pod.Status) {
			if first == 0 {
				first = rounds
			}
		}}
		l.now = func() lifecycle.Now {
			rounds++
			return k.now()
		}
		l.observed.Apply(plan, lifecycle.Event{At: k.now(), Kind: lifecycle.Recovered})
		k.began = k.began.Add(-10 * time.Second) // so that a probe is due
		l.run()
		if got := k.done[asked]; !strings.HasPrefix(got, string(lifecycle.RunProbe)) {
			t.Errorf("it began with %s", got)
		}
		if first != 1 {
			t.Errorf("it said nothing until round %d", first)
		}
	})
}

// Observations are recorded before the next actions. Actions and preparations run before anything is
// published.
func TestLoopActsBeforeItPublishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &orderedKernel{fakeKernel: newFakeKernel(map[string]behaviour{"a": {after: time.Second}})}
		note := func(what string) { k.order = append(k.order, what) }
		l := loop{plan: testPlan(pod.RestartNever, nil, []string{"a"}), executor: k, now: k.now,
			publish:      func(*pod.Status) { note("publish") },
			recordEvents: func(*pod.EventLog) { note("events") },
			prepare:      func(lifecycle.Preparation) { note("prepare") },
		}
		l.run()
		order := strings.Join(k.order, ", ")
		for _, want := range []string{"save, do startContainer, prepare, publish", "save, prepare, events, publish"} {
			if !strings.Contains(order, want) {
				t.Errorf("%s: no %q in it", order, want)
			}
		}
	})
}

// orderedKernel records the order in which it is called.
type orderedKernel struct {
	*fakeKernel
	order []string
}

func (k *orderedKernel) Save(*lifecycle.Observed) { k.order = append(k.order, "save") }

func (k *orderedKernel) Do(a lifecycle.Action) {
	k.order = append(k.order, "do "+string(a.Kind))
	k.fakeKernel.Do(a)
}

// The loop gives the signs of life, and a request for one does not count as activity: the supervisor may
// still hibernate.
func TestLoopProvesThatItLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		beat, alive, idle := make(chan struct{}), make(chan struct{}, 1), make(chan struct{}, 1)
		var events chan lifecycle.Event
		l := &loop{
			plan: testPlan(pod.RestartAlways, nil, nil), observed: lifecycle.Observed{Sandbox: lifecycle.SandboxUp},
			executor: silentKernel{events}, heartbeat: beat, ping: func() { alive <- struct{}{} },
			now:    func() lifecycle.Now { return lifecycle.Now{} },
			quiet:  func() time.Duration { return 300 * time.Millisecond },
			onIdle: func(lifecycle.Delegation) { idle <- struct{}{} },
		}
		begun := time.Now()
		go l.wait(0, 0, 0)
		for range 29 {
			time.Sleep(10 * time.Millisecond)
			beat <- struct{}{}
			<-alive
		}
		<-idle
		if took := time.Since(begun); took != 300*time.Millisecond {
			t.Errorf("it hibernates after %v", took)
		}
	})
}

// silentKernel is a kernel in which nothing happens.
type silentKernel struct{ events chan lifecycle.Event }

func (silentKernel) Save(*lifecycle.Observed) {}

func (silentKernel) Do(lifecycle.Action) {}

func (k silentKernel) Events() <-chan lifecycle.Event { return k.events }

// recorder is a kernel that counts the calls of Save.
type recorder struct {
	*fakeKernel
	saves, probes int
}

func (r *recorder) Save(*lifecycle.Observed) { r.saves++ }

func (r *recorder) Do(a lifecycle.Action) {
	if a.Kind != lifecycle.RunProbe {
		r.fakeKernel.Do(a)
		return
	}
	r.probes++
	r.emit(lifecycle.Event{Kind: lifecycle.Probed, Container: a.Container, Attempt: a.Attempt, Probe: a.Probe, Outcome: lifecycle.Success})
}

// Probes that give the same result as before are not recorded: nothing is written as long as results do not
// change.
func TestProbesWithTheSameResultAreNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		short, probes := recorded(time.Minute)
		long, more := recorded(time.Hour)
		if probes < 20*50 || more < 20*3500 || max(short, long) > 300 {
			t.Errorf("a minute: %d probes, %d records; an hour: %d probes, %d records", probes, short, more, long)
		}
	})
}

// recorded runs 20 containers, which are probed every second, for the time d, and returns the numbers of
// records and probes.
func recorded(d time.Duration) (records, probes int) {
	names, behave := []string{}, map[string]behaviour{}
	for i := range 20 {
		names = append(names, string(rune('a'+i)))
		behave[names[i]] = behaviour{after: d}
	}
	plan := testPlan(pod.RestartNever, nil, names)
	for i := range plan.Containers {
		plan.Containers[i].Readiness = &pod.Probe{Handler: pod.Handler{Exec: []string{"true"}}, PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3}
	}
	k := &recorder{fakeKernel: newFakeKernel(behave)}
	l := loop{plan: plan, executor: k, now: k.now, publish: func(*pod.Status) {}}
	l.run()
	return k.saves, k.probes
}

// A loop whose only events are successes of probes is idle, if others can run the probes: each time after the
// idle time, never while a probe runs. Otherwise it is never idle between two probes of a second.
func TestLoopIsIdleWithSteadyProbes(t *testing.T) {
	for _, delegable := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			plan := testPlan(pod.RestartNever, nil, []string{"a"})
			plan.Containers[0].Readiness = &pod.Probe{Handler: pod.Handler{Exec: []string{"true"}}, PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3}
			k := &recorder{fakeKernel: newFakeKernel(map[string]behaviour{"a": {after: time.Minute}})}
			var moments []time.Duration
			l := loop{
				plan: plan, executor: k, now: k.now, publish: func(*pod.Status) {}, quiet: func() time.Duration { return 2500 * time.Millisecond },
				delegable: func(*pod.Container, lifecycle.ProbeKind) bool { return delegable },
				onIdle: func(left lifecycle.Delegation) {
					moments = append(moments, time.Since(k.began))
					if len(left.Probes) != 1 || left.Wake != 0 {
						t.Errorf("left to do: %+v", left)
					}
				},
			}
			l.run()
			if delegable && (len(moments) < 20 || moments[0] != 2500*time.Millisecond || moments[1] != 5*time.Second) || !delegable && len(moments) > 0 {
				t.Errorf("delegable %t: idle at %v", delegable, moments)
			}
		})
	}
}
