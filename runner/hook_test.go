package runner

import (
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// TestPostStart: a container behind one with a hook starts when the hook is done.
func TestPostStart(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	first := shell(l, "first", "exec sleep 1000")
	first.PostStart = new(execHandler("sleep 0.3; echo done > /v/hook"))
	second := shell(l, "second", "cat /v/hook")
	plan := newPlan(nil, []pod.Container{first, second})
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDir}}
	for i := range plan.Containers {
		plan.Containers[i].Mounts = []pod.Mount{{Volume: "v", Path: "/v"}}
	}
	p := start(t, plan)
	p.until("past the second container", func(st pod.Status) bool { return st.Containers[1].State.Terminated != nil })
	if out := p.log("second"); out != "done\n" {
		t.Errorf("the second container saw %q", out)
	}
}

// TestPostStartFails: the container is ended, and what its hook has said is not told.
func TestPostStartFails(t *testing.T) {
	testenv.NoLeaks(t)
	c := shell(layer(t), "a", "trap 'exit 7' TERM; >/ready; while true; do sleep 0.1; done")
	c.PostStart = new(execHandler("until test -e /ready; do usleep 1000; done; echo secret; exit 5"))
	p := start(t, newPlan(nil, []pod.Container{c}))
	st := p.ended()
	if end := st.Containers[0].State.Terminated; st.Phase != pod.Failed || end == nil || end.ExitCode != 7 {
		t.Errorf("the pod is %s, its container %+v", st.Phase, st.Containers[0].State)
	}
	p.said("FailedPostStartHook", "PostStartHook failed: command exited with 5")
	p.said("Killing", "FailedPostStartHook")
}

// TestPreStop: the hook runs in the container, is told why, and the stop signal comes
// when it is done.
func TestPreStop(t *testing.T) {
	testenv.NoLeaks(t)
	c := shell(layer(t), "a", `trap 'echo asked to stop; exit 0' TERM; while true; do sleep 0.1; done`)
	c.PreStop = &pod.Handler{Exec: []string{"/bin/sh", "-c", `sleep 0.3; echo "hook $0" > /proc/1/fd/1`}}
	plan := newPlan(nil, []pod.Container{c})
	plan.HookReason = true
	p := start(t, plan)
	p.running()
	st := p.stop(30)
	if out := p.log("a"); out != "hook --reason=Delete\nasked to stop\n" || st.Phase != pod.Succeeded {
		t.Errorf("the pod is %s, the container said %q", st.Phase, out)
	}
}

// TestPreStopHTTP: a server is told over the pod's network; what it answers is well.
func TestPreStopHTTP(t *testing.T) {
	testenv.NoLeaks(t)
	c := httpd(layer(t), "a", "8081")
	c.Args[2] = `mkdir -p /tmp/www/cgi-bin && cd /tmp/www/cgi-bin && printf '%s\n' '#!/bin/sh' 'echo "$REQUEST_URI" > /proc/1/fd/1' \
		'printf "Status: 500 No\r\n\r\n"' > stop && chmod +x stop && ` + c.Args[2]
	c.PreStop = &pod.Handler{HTTP: &pod.HTTPGet{Port: 8081, Path: "/cgi-bin/stop?a=b"}}
	c.Readiness = probed(pod.Handler{HTTP: &pod.HTTPGet{Port: 8081, Path: "/ok"}})
	plan := newPlan(nil, []pod.Container{c})
	plan.HookReason = true
	p := start(t, plan)
	p.until("ready", func(st pod.Status) bool { return st.Ready() })
	p.stop(5)
	if out := p.log("a"); !strings.Contains(out, "/cgi-bin/stop?a=b&reason=Delete\n") {
		t.Errorf("the server saw %q", out)
	}
	if events, _ := p.place.Events(); strings.Contains(strings.ToLower(describe(events)), "failedprestop") {
		t.Errorf("the hook is said to have failed: %+v", events)
	}
}

func describe(events []pod.Event) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(e.Reason + " ")
	}
	return b.String()
}

// TestPreStopOverruns: a hook without an end has the grace, and then the container has
// two seconds; a container that ends meanwhile ends its hook.
func TestPreStopOverruns(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	slow := shell(l, "slow", "trap 'echo asked; exit 0' TERM; sleep 1000 & wait")
	slow.PreStop = new(execHandler("exec sleep 1000"))
	gone := shell(l, "gone", "while ! test -f /tmp/end; do sleep 0.1; done")
	gone.PreStop = &pod.Handler{Exec: []string{"/bin/sh", "-c", "touch /tmp/end; exec sleep 1000"}}
	sleeps := shell(l, "sleeps", "trap 'exit 0' TERM; while true; do sleep 0.1; done")
	sleeps.PreStop = &pod.Handler{SleepSeconds: new(int64(1))}
	p := start(t, newPlan(nil, []pod.Container{slow, gone, sleeps}))
	p.running()
	began := time.Now()
	st := p.stop(2)
	took := time.Since(began)
	if took < 2*time.Second || took > time.Minute {
		t.Errorf("it took %v", took)
	}
	if out := p.log("slow"); out != "asked\n" || st.Phase != pod.Succeeded {
		t.Errorf("the pod is %s, its container said %q: %+v", st.Phase, out, st.Containers)
	}
}

// TestSidecarGate: an app starts when its sidecar's startup probe has succeeded.
func TestSidecarGate(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	side := shell(l, "side", "sleep 0.5; mkdir -p /tmp/www; echo hello from the sidecar > /tmp/www/index.html; exec httpd -f -p 8082 -h /tmp/www")
	side.Sidecar = true
	side.Startup = probed(pod.Handler{HTTP: &pod.HTTPGet{Port: 8082, Path: "/"}})
	side.Startup.FailureThreshold = 60
	p := start(t, newPlan([]pod.Container{side}, []pod.Container{shell(l, "app", "wget -q -O - http://localhost:8082/")}))
	if st := p.ended(); st.Phase != pod.Succeeded {
		t.Errorf("the pod is %s: %+v", st.Phase, st.Containers)
	}
	if out := p.log("app"); out != "hello from the sidecar\n" {
		t.Errorf("the app saw %q", out)
	}
}
