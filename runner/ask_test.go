package runner

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// probed is a probe that is asked every second and has one chance.
func probed(h pod.Handler) *pod.Probe {
	return &pod.Probe{Handler: h, PeriodSeconds: 1, TimeoutSeconds: 5, SuccessThreshold: 1, FailureThreshold: 1}
}

func execHandler(script string) pod.Handler {
	return pod.Handler{Exec: []string{"/bin/sh", "-c", script}}
}

// httpd is a container with busybox's web server, on a port of all addresses.
func httpd(layer, name, port string) pod.Container {
	return shell(layer, name, "mkdir -p /tmp/www && echo well > /tmp/www/ok && exec httpd -f -v -p "+port+" -h /tmp/www")
}

// said waits for an event of the pod, by its reason and a part of its message.
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

// TestProbesReachThePod: every kind of probe, against real servers, in the pod's
// network and its containers, with nothing in the image but the servers.
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

// TestGRPCProbe: the server, gRPC's own, is in the pod's network: the test's.
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

// TestLivenessRestarts: a container that is not well is stopped, within the probe's
// grace, and started again; one whose command cannot be run is left alone.
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

// TestProbeTimeout: a command that takes too long is killed, with what it has started,
// and even what has left its group does not hold the probe.
func TestProbeTimeout(t *testing.T) {
	testenv.NoLeaks(t)
	c := shell(layer(t), "a", "exec sleep 1000")
	c.Readiness = probed(execHandler("setsid sleep 4243 & sleep 4242 & sleep 4242"))
	c.Readiness.TimeoutSeconds = 1
	p := start(t, newPlan(nil, []pod.Container{c}))
	p.said("Unhealthy", "Readiness probe failed: command timed out:")
	for sleeping("4242") > 2 { // at most the ones of the next probe
		<-time.After(10 * time.Millisecond)
	}
}

// sleeping counts the processes that sleep for so long.
func sleeping(seconds string) (n int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && string(b) == "sleep\x00"+seconds+"\x00" {
			n++
		}
	}
	return n
}

// TestProbeDescriptors (S1): a probe's process has no descriptor but its three.
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
