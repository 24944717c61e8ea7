package runner

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/testenv"
)

// probed returns a probe that runs every second and fails at the first failure.
func probed(h pod.Handler) *pod.Probe {
	return &pod.Probe{Handler: h, PeriodSeconds: 1, TimeoutSeconds: 5, SuccessThreshold: 1, FailureThreshold: 1}
}

func execHandler(script string) pod.Handler {
	return pod.Handler{Exec: []string{"/bin/sh", "-c", script}}
}

// httpd returns a container with busybox's web server, on a port of all addresses.
func httpd(layer, name, port string) pod.Container {
	return shell(layer, name, "mkdir -p /tmp/www && echo well > /tmp/www/ok && exec httpd -f -v -p "+port+" -h /tmp/www")
}

// counted returns a container with busybox's web server, which logs nothing. Its /cgi-bin/ok appends each request
// to the file asked in the volume v, and fails while there is a file fail.
func counted(layer, name, port string) pod.Container {
	return shell(layer, name, `mkdir -p /tmp/www/cgi-bin && cd /tmp/www/cgi-bin && printf '%s\n' '#!/bin/sh' \
		'echo "$REQUEST_METHOD $REQUEST_URI $HTTP_HOST $HTTP_USER_AGENT $HTTP_ACCEPT $HTTP_X_OF $REMOTE_ADDR" >> /v/asked' \
		'test -e /v/fail && printf "Status: 503 No\r\n"' 'printf "Content-Type: text/plain\r\n\r\nwell\n"' > ok && chmod +x ok && exec httpd -f -p `+port+` -h /tmp/www`)
}

// said waits for an event of the pod with a reason and a part of its message.
func (p *testPod) said(reason, part string) {
	p.t.Helper()
	deadline := time.After(time.Minute)
	for {
		events, err := p.place.Events()
		if err != nil {
			p.t.Fatal(err)
		}
		for _, e := range events {
			if e.Reason == reason && strings.Contains(e.Message, part) {
				return
			}
		}
		select {
		case <-p.changes:
		case <-time.After(20 * time.Millisecond): // events change without a status
		case <-deadline:
			p.t.Fatalf("no event %s %q within a minute: %+v", reason, part, events)
		}
	}
}

// TestProbesReachThePod runs every kind of probe against real servers, in the pod's network and its
// containers, with nothing in the image but the servers.
func TestProbesReachThePod(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	web := httpd(l, "web", "8080")
	web.Startup = probed(pod.Handler{TCP: &pod.TCPSocket{Port: 8080}})
	web.Startup.FailureThreshold = 30
	web.Liveness = probed(pod.Handler{HTTP: &pod.HTTPGet{Port: 8080, Path: "/ok"}})
	web.Readiness = probed(pod.Handler{HTTP: &pod.HTTPGet{Host: "localhost", Port: 8080, Path: "/ok"}})
	worker := shell(l, "worker", "touch /tmp/well; exec sleep 1000")
	worker.Readiness = probed(execHandler("test -f /tmp/well && test $PPID = 0"))
	w := startWhole(t, newPlan(nil, []pod.Container{web, worker}))
	w.until((*pod.Status).Ready)
}

// TestGRPCProbe probes gRPC's own server, which runs in the pod's network, the test's.
func TestGRPCProbe(t *testing.T) {
	testenv.NoLeaks(t)
	p := newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")})
	p.Containers[0].Readiness = probed(pod.Handler{GRPC: &pod.GRPC{Port: 9123, Service: "s"}})
	run := start(t, p)
	run.said("Unhealthy", "Readiness probe failed: error: failed to connect service at \"127.0.1.1:9123\"")
	listener, err := net.Listen("tcp", "0.0.0.0:9123")
	if err != nil {
		t.Fatal(err)
	}
	h := health.NewServer()
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, h)
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(listener)
	}()
	defer func() {
		server.Stop()
		<-done
	}()
	run.said("Unhealthy", "code = NotFound desc = unknown service")
	h.SetServingStatus("s", healthpb.HealthCheckResponse_SERVING)
	run.until("ready", func(st pod.Status) bool { return st.Ready() })
	h.SetServingStatus("s", healthpb.HealthCheckResponse_NOT_SERVING)
	run.until("unready", func(st pod.Status) bool { return !st.Ready() })
	run.said("Unhealthy", `service unhealthy (responded with "NOT_SERVING")`)
}

// TestLivenessRestarts: an unhealthy container is stopped, within the probe's grace period, and started
// again; one whose command cannot be run is left alone.
func TestLivenessRestarts(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	sick := shell(l, "sick", "trap '' TERM; while true; do sleep 1; done")
	sick.Liveness = probed(execHandler("echo not well >&2; exit 3"))
	sick.Liveness.GraceSeconds = new(int64(1))
	odd := shell(l, "odd", "exec sleep 1000")
	odd.Liveness = probed(pod.Handler{Exec: []string{"/no/such/command"}})
	plan := newPlan(nil, []pod.Container{sick, odd})
	plan.RestartPolicy = pod.RestartAlways
	p := start(t, plan)
	st := p.until("restarted", func(st pod.Status) bool {
		return st.Containers[0].RestartCount > 0 && st.Containers[0].LastState.Terminated != nil
	})
	if last := st.Containers[0].LastState.Terminated; last.Signal != 9 || last.ExitCode != 137 {
		t.Errorf("it ended with %+v", last)
	}
	p.said("Unhealthy", "Liveness probe failed: not well")
	p.said("Killing", "Container sick failed liveness probe, will be restarted")
	p.said("Unhealthy", "Liveness probe errored and resulted in unknown state")
	if final := p.stop(1); final.Containers[1].RestartCount != 0 {
		t.Error("a container was restarted whose probe could not be run")
	}
}

// TestProbeTimeout: a command that takes too long is killed together with its children, and even a process
// that has left its group does not block the probe.
func TestProbeTimeout(t *testing.T) {
	testenv.NoLeaks(t)
	c := shell(layer(t), "a", "exec sleep 1000")
	c.Readiness = probed(execHandler("setsid sleep 4243 & sleep 4242 & sleep 4242"))
	c.Readiness.TimeoutSeconds = 1
	p := start(t, newPlan(nil, []pod.Container{c}))
	p.said("Unhealthy", "Readiness probe failed: command timed out:")
	for sleeping("4242") > 2 { // at most the processes of the next probe
		<-time.After(10 * time.Millisecond)
	}
}

// sleeping counts the processes that sleep for so many seconds.
func sleeping(seconds string) (n int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && string(b) == "sleep\x00"+seconds+"\x00" {
			n++
		}
	}
	return n
}

// TestProbeDescriptors (S1): a probe's process has only its three descriptors.
func TestProbeDescriptors(t *testing.T) {
	testenv.NoLeaks(t)
	c := shell(layer(t), "a", "exec sleep 1000")
	c.Readiness = probed(execHandler("cd /proc/self/fd && set -- * && echo $@ > /tmp/fds"))
	p := start(t, newPlan(nil, []pod.Container{c}))
	p.until("ready", func(st pod.Status) bool { return st.Ready() })
	// 3 is the directory that the shell reads.
	if _, out := p.exec("a", "cat", "/tmp/fds"); out != "0 1 2 3\n" && out != "0 1 2\n" {
		t.Errorf("descriptors %q", out)
	}
}

// TestRarelyProbedPodHibernates: between two probes that are far apart the supervisor hibernates, and the pod
// stays ready.
func TestRarelyProbedPodHibernates(t *testing.T) {
	testenv.NoLeaks(t)
	c := shell(layer(t), "a", "exec sleep 1000")
	c.Readiness = probed(execHandler("true"))
	c.Readiness.PeriodSeconds = 600
	plan := newPlan(nil, []pod.Container{c})
	w, podInit := hibernated(t, plan)
	if st, err := w.place.Status(); err != nil || !st.Ready() {
		t.Errorf("asleep it is %+v, %v", st, err)
	}
	if code, _ := w.ask("a", "true"); code != 0 {
		t.Errorf("exec ended with %d", code)
	}
	w.asleep(podInit)
	w.until((*pod.Status).Ready)
}

// TestUnusualProbeStaysAwake: a supervisor whose probes no prober can run stays, because hibernating between two
// of them would cost more than it saves.
func TestUnusualProbeStaysAwake(t *testing.T) {
	testenv.NoLeaks(t)
	t.Setenv("PODRUN_HIBERNATE_AFTER", "20ms")
	c := counted(layer(t), "a", "8086")
	c.Readiness = probed(pod.Handler{HTTP: &pod.HTTPGet{Host: "localhost", Port: 8086, Path: "/cgi-bin/ok"}})
	plan := withFifos(t, newPlan(nil, []pod.Container{c}))
	w := startWhole(t, plan)
	w.until((*pod.Status).Ready)
	supervisor, _ := w.processes()
	for asked := ""; strings.Count(asked, "GET") < 3; {
		b, err := os.ReadFile(filepath.Join(w.place.VolumesDir(), "v", "asked"))
		if asked = string(b); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", supervisor)); err != nil || string(b) != "podrun-superv\n" {
			t.Fatalf("between two probes the supervisor is %q, %v", b, err)
		}
	}
}

// TestPostStart: a container that follows one with a hook starts when the hook has finished.
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

// TestPostStartFails: the container is killed, and the hook's output is not reported.
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

// TestPreStop: the hook runs in the container and gets the reason; the stop signal follows when it has
// finished.
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

// TestPreStopHTTP: a server gets the request over the pod's network; any answer is a success.
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

// TestPreStopOverruns: a hook that does not finish gets the grace period, and then the container has two
// seconds; a container that exits meanwhile ends its hook.
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
