package runner

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/testenv"
)

// probedPod is a pod whose supervisor hibernates although its containers have probes. Its volume v is in a
// directory of the host.
type probedPod struct {
	wholePod
	podInit int
}

// startProbed starts a pod, and returns when it is ready and its supervisor hibernates.
func startProbed(t *testing.T, plan *pod.Plan) probedPod {
	t.Helper()
	withShim(t)
	t.Setenv("PODRUN_HIBERNATE_AFTER", "20ms")
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDir}}
	for i := range plan.Containers {
		plan.Containers[i].Mounts = []pod.Mount{{Volume: "v", Path: "/v"}}
	}
	w := startWhole(t, plan)
	w.until((*pod.Status).Ready)
	_, podInit := w.processes()
	w.asleep(podInit)
	return probedPod{w, podInit}
}

func (p probedPod) file(name string) string { return filepath.Join(p.place.VolumesDir(), "v", name) }

func (p probedPod) create(name string) {
	p.t.Helper()
	if err := os.WriteFile(p.file(name), nil, 0o666); err != nil {
		p.t.Fatal(err)
	}
}

// lines returns the number of lines of a file of the volume.
func (p probedPod) lines(name string) int {
	b, _ := os.ReadFile(p.file(name))
	return bytes.Count(b, []byte("\n"))
}

// eventually waits until ok returns true, without a request to the pod.
func (p probedPod) eventually(what string, ok func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); idle(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			st, err := p.place.Status()
			p.t.Fatalf("not within a minute: %s; status %+v, %v", what, st, err)
		}
	}
}

// status waits for a status, without a request to the pod.
func (p probedPod) status(what string, ok func(*pod.Status) bool) {
	p.t.Helper()
	p.eventually(what, func() bool {
		st, err := p.place.Status()
		return err == nil && ok(st)
	})
}

// grows waits until a file of the volume has some more lines that were written while no supervisor runs.
func (p probedPod) grows(name string) {
	p.t.Helper()
	p.eventually(name+" grows without a supervisor", func() bool {
		before, err := os.Stat(recordOf(p.place))
		begun := p.lines(name)
		if err != nil || supervisorOf(p.podInit) != 0 {
			return false
		}
		for supervisorOf(p.podInit) == 0 && p.lines(name) < begun+3 {
			idle(5 * time.Millisecond)
		}
		after, err := os.Stat(recordOf(p.place)) // every supervisor writes it
		return err == nil && supervisorOf(p.podInit) == 0 && before.ModTime().Equal(after.ModTime())
	})
}

func unready(st *pod.Status) bool { return !st.Ready() }

// probers returns the probers of a pod init.
func probers(podInit int) []int {
	return slices.DeleteFunc(childrenOf(podInit), func(pid int) bool {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		return string(b) != protocol.CommProber+"\n"
	})
}

// An exec probe runs at its times without a supervisor, with the attributes that it has with one. Its failure
// wakes a supervisor, which counts from there: the threshold and one more failures.
func TestExecProbesDuringHibernation(t *testing.T) {
	testenv.NoLeaks(t)
	c := shell(layer(t), "a", "exec sleep 1000")
	c.User, c.SupplementalGroups, c.OOMScoreAdj = "1000:1000", []uint32{7}, 900
	c.Readiness = probed(execHandler("exec </dev/null >/v/now 2>&1\ncat /proc/self/cgroup\n" + attributes + `
mv /v/now /v/seen; echo >> /v/asked; if test -e /v/fail; then echo >> /v/failed; exit 1; fi`))
	c.Readiness.FailureThreshold = 3
	plan := newPlan(nil, []pod.Container{c})
	p := startProbed(t, plan)
	p.grows("asked")
	counts := func(notCounted int) func() bool {
		return func() bool {
			all, err := p.place.ProbeCounts(plan)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(all, func(n store.ProbeCount) bool { return n.Container == "a" && n.Kind == "readiness" })
			failed := p.lines("failed")
			return i >= 0 && int(all[i].Failed) == failed-notCounted && int(all[i].Successful) == p.lines("asked")-failed
		}
	}
	p.eventually("the prober counts successes", counts(0))
	p.create("fail")
	p.status("unready", unready)
	p.eventually("only the supervisor counts failures", counts(1))
	first, err := os.ReadFile(p.file("seen")) // the supervisor runs it now
	if err != nil {
		t.Fatal(err)
	}
	if n := p.lines("failed"); n < 1+3 {
		t.Errorf("it was unready after %d failures", n)
	}
	if err := os.Remove(p.file("fail")); err != nil {
		t.Fatal(err)
	}
	p.status("ready", (*pod.Status).Ready)
	p.grows("asked")
	last, err := os.ReadFile(p.file("seen"))
	if err != nil {
		t.Fatal(err)
	}
	compareText(t, "probe", string(first), string(last))
}

// HTTP and TCP probes reach the pod's servers without a supervisor, with the same request. A failed liveness
// probe restarts the container.
func TestServerProbesDuringHibernation(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	web := counted(l, "web", "8083")
	web.Readiness = probed(pod.Handler{HTTP: &pod.HTTPGet{Port: 8083, Path: "/cgi-bin/ok?a=b", Headers: []pod.Header{{Name: "X-Of", Value: "podrun"}}}})
	once := shell(l, "once", `nc -ll -p 8084 -e /bin/sh -c 'echo >> /v/connected' & until test -e /v/stop; do usleep 10000; done; rm /v/stop; kill $!; exec sleep 1000`)
	once.Startup = probed(pod.Handler{TCP: &pod.TCPSocket{Port: 8084}})
	once.Startup.FailureThreshold = 60
	once.Liveness = probed(pod.Handler{TCP: &pod.TCPSocket{Port: 8084}})
	once.Liveness.FailureThreshold, once.Liveness.GraceSeconds = 2, new(int64(1))
	plan := newPlan(nil, []pod.Container{web, once})
	plan.RestartPolicy = pod.RestartAlways
	p := startProbed(t, plan)
	p.grows("asked")
	p.grows("connected")
	p.eventually("two probers, without privileges and with a socket at most", func() bool {
		list := probers(p.podInit)
		return len(list) == 2 && !slices.ContainsFunc(list, func(pid int) bool {
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
			return err != nil || len(files) > 4 || !strings.Contains(string(status), "CapPrm:\t0000000000000000\n") || !strings.Contains(string(status), "NoNewPrivs:\t1\n")
		})
	})
	p.create("fail")
	p.status("unready", unready)
	if err := os.Remove(p.file("fail")); err != nil {
		t.Fatal(err)
	}
	p.status("ready", (*pod.Status).Ready)
	p.grows("asked")
	b, err := os.ReadFile(p.file("asked"))
	if err != nil {
		t.Fatal(err)
	}
	if kinds := slices.Compact(strings.Split(strings.TrimSpace(string(b)), "\n")); len(kinds) != 1 || !strings.Contains(kinds[0], "kube-probe/") {
		t.Errorf("different requests came: %q", kinds)
	}
	p.create("stop")
	p.status("restarted", func(st *pod.Status) bool { return st.Containers[1].RestartCount == 1 })
}

// A command that takes too long is killed, and the supervisor finds the same.
func TestProbeTimeoutDuringHibernation(t *testing.T) {
	testenv.NoLeaks(t)
	c := shell(layer(t), "a", "exec sleep 1000")
	c.Readiness = probed(execHandler("if test -e /v/block; then echo >> /v/blocked; sleep 4244 & exec sleep 4244; fi"))
	c.Readiness.TimeoutSeconds = 1
	p := startProbed(t, newPlan(nil, []pod.Container{c}))
	p.create("block")
	p.status("unready", unready)
	if n := p.lines("blocked"); n < 2 {
		t.Errorf("it was unready after %d runs", n)
	}
	if err := os.Remove(p.file("block")); err != nil {
		t.Fatal(err)
	}
	p.eventually("no command is left", func() bool { return sleeping("4244") == 0 })
}

// A request that comes while a prober's command runs ends that command; the supervisor repeats the probe.
func TestWakeDuringProbe(t *testing.T) {
	testenv.NoLeaks(t)
	c := shell(layer(t), "a", "exec sleep 1000")
	c.Readiness = probed(execHandler("if test -e /v/block; then echo >> /v/blocked; exec sleep 4245; fi"))
	c.Readiness.TimeoutSeconds = 600
	p := startProbed(t, newPlan(nil, []pod.Container{c}))
	p.create("block")
	p.eventually("the command runs", func() bool { return p.lines("blocked") == 1 && sleeping("4245") == 1 })
	if code, out := p.ask("a", "true"); code != 0 {
		t.Errorf("exec ended with %d: %s", code, out)
	}
	p.eventually("only the supervisor's command runs", func() bool { return p.lines("blocked") == 2 && sleeping("4245") == 1 })
	if left := probers(p.podInit); len(left) > 0 {
		t.Errorf("probers %v are left", left)
	}
}

// Probers keep nothing: neither they nor descriptors are left after each hibernation, and they end with the pod
// init, in the host's PID namespace, too.
func TestProbersLeaveNothing(t *testing.T) {
	for _, hostPID := range []bool{false, true} {
		t.Run(fmt.Sprintf("hostPID %t", hostPID), func(t *testing.T) {
			testenv.NoLeaks(t)
			c := shell(layer(t), "a", "exec sleep 1000")
			c.Readiness, c.Liveness = probed(execHandler("true")), probed(execHandler("true"))
			plan := newPlan(nil, []pod.Container{c})
			plan.HostPID, plan.RestartPolicy = hostPID, pod.RestartAlways
			p := startProbed(t, plan)
			fds := 0
			for i := range 3 {
				p.asleep(p.podInit)
				p.eventually("two probers run", func() bool { return len(probers(p.podInit)) == 2 })
				all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.podInit))
				if err != nil {
					t.Fatal(err)
				}
				if i > 0 && len(all) != fds {
					t.Errorf("the pod init has %d descriptors, then %d", fds, len(all))
				}
				fds = len(all)
				if code, out := p.ask("a", "true"); code != 0 {
					t.Errorf("exec ended with %d: %s", code, out)
				}
			}
			p.asleep(p.podInit)
			old := probers(p.podInit)
			kill9(t, p.podInit)
			p.eventually("the probers end", func() bool {
				return !slices.ContainsFunc(old, func(pid int) bool {
					b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
					return string(b) == protocol.CommProber+"\n"
				})
			})
			p.untilAgain("ready in another sandbox", func(st *pod.Status) bool { return st.Ready() && st.Containers[0].RestartCount == 1 })
		})
	}
}

// A killed prober is an event: a supervisor starts and leaves the probe to another one.
func TestKilledProberIsReplaced(t *testing.T) {
	testenv.NoLeaks(t)
	c := shell(layer(t), "a", "exec sleep 1000")
	c.Readiness = probed(execHandler("echo >> /v/asked"))
	p := startProbed(t, newPlan(nil, []pod.Container{c}))
	p.eventually("a prober runs", func() bool { return len(probers(p.podInit)) == 1 })
	old := probers(p.podInit)[0]
	if err := unix.Kill(old, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.eventually("another prober runs", func() bool { now := probers(p.podInit); return len(now) == 1 && now[0] != old })
	p.grows("asked")
}
