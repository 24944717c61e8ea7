package runner

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/cgroups"
	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/runner/sandbox"
)

// On a host with a delegated cgroup the kernel enforces the limits: in the cgroups of the pod and its
// containers, after hibernation and after a restart.
func TestLimitsOnARealHost(t *testing.T) {
	testenv.NeedVM(t, func() error {
		_, err := cgroups.Delegated()
		return err
	})
	testenv.NoLeaks(t)
	l := layer(t)
	hog := shell(l, "hog", "read x < /v/fifo; tail /dev/zero")
	hog.Resources = pod.Resources{CPULimit: 400, MemoryLimit: 20 << 20, MemoryRequest: 20 << 20}
	hog.Mounts = []pod.Mount{{Volume: "v", Path: "/v"}}
	fine := shell(l, "fine", "trap 'exit 0' TERM; while :; do sleep 1; done")
	fine.Resources = pod.Resources{MemoryLimit: 30 << 20, MemoryRequest: 30 << 20, Pids: 100}
	plan := newPlan([]pod.Container{shell(l, "i", "mkfifo /v/fifo")}, []pod.Container{hog, fine})
	plan.InitContainers[0].Mounts = hog.Mounts
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDir}}
	plan.RestartPolicy, plan.GraceSeconds = pod.RestartAlways, 1
	plan.Resources = pod.Resources{CPULimit: 400, MemoryLimit: 50 << 20, MemoryRequest: 50 << 20, Pids: 100}
	w, podInit := hibernated(t, plan)
	var group string
	w.until(func(st *pod.Status) bool { group = st.Cgroup; return true })
	check := func(when string) {
		t.Helper()
		for file, want := range map[string]string{
			"memory.max": "52428800", "cpu.max": "40000 100000", "pids.max": "2048",
			"hog/memory.max": "20971520", "hog/cpu.max": "40000 100000", "hog/memory.oom.group": "1", "fine/memory.max": "31457280", "fine/pids.max": "100", "hog/pids.max": "max",
		} {
			if b, err := os.ReadFile(filepath.Join(group, file)); err != nil || strings.TrimSpace(string(b)) != want {
				t.Errorf("%s: %s is %q, want %q: %v", when, file, b, want, err)
			}
		}
		if code, out := w.ask("fine", "/bin/sh", "-c", "cat /proc/self/cgroup /sys/fs/cgroup/memory.max; ! touch /sys/fs/cgroup/x"); code != 0 || !strings.HasPrefix(out, "0::/\n31457280\n") {
			t.Errorf("%s: the container sees %d %q", when, code, out)
		}
	}
	check("after hibernation")
	w.asleep(podInit)
	fifo, err := os.OpenFile(filepath.Join(w.place.VolumesDir(), "v", "fifo"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fifo.Close()
	w.until(func(st *pod.Status) bool {
		c := st.Containers[0]
		if end := c.LastState.Terminated; end != nil && (end.Reason != "OOMKilled" || end.ExitCode != 137) {
			t.Errorf("the hog ended with %+v", end)
		}
		if st.Containers[1].RestartCount > 0 {
			t.Errorf("its neighbour was restarted: %+v", st.Containers[1])
		}
		return c.RestartCount > 0 && c.State.Running != nil
	})
	check("after a restart")
	w.remove()
	if _, err := os.Stat(group); !os.IsNotExist(err) {
		t.Errorf("the pod's cgroup is left: %v", err)
	}
}

// A container has its own OOM score on every start, not the score of the process that starts it (crun#1357: from
// the second start on it was the monitor's).
func TestOOMScoreOnEveryStart(t *testing.T) {
	testenv.NoLeaks(t)
	a := shell(layer(t), "a", "cat /proc/self/oom_score_adj; sh -c 'cat /proc/self/oom_score_adj'")
	a.OOMScoreAdj = 937
	b := shell(a.Layers[0], "b", a.Args[2]) // cannot go below the supervisor's own
	b.OOMScoreAdj = -997
	plan := newPlan(nil, []pod.Container{a, b})
	root := t.TempDir()
	place := store.Dirs{Data: filepath.Join(root, "data"), Runtime: filepath.Join(root, "run")}.Pod(plan.Namespace, plan.Name)
	if err := place.Create(plan, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Sethostname([]byte(plan.Hostname)); err != nil {
		t.Fatal(err)
	}
	e := testEngine(plan, place)
	await := func(kind lifecycle.EventKind) lifecycle.Event {
		t.Helper()
		for {
			select {
			case ev := <-e.Events():
				if ev.Kind == lifecycle.StartFailed || ev.Kind == lifecycle.SandboxFailed {
					t.Fatalf("%+v", ev)
				}
				if ev.Kind == kind {
					return ev
				}
			case <-time.After(time.Minute):
				t.Fatalf("no %s within a minute", kind)
			}
		}
	}
	e.Do(lifecycle.Action{Kind: lifecycle.CreateSandbox})
	await(lifecycle.SandboxReady)
	own, floor := sandbox.OwnOOMScore(), sandbox.OOMScoreFloor()
	for attempt := range 10 {
		for name, want := range map[string]int{"a": max(937, floor), "b": floor} {
			e.Do(lifecycle.Action{Kind: lifecycle.StartContainer, Container: name, Attempt: attempt})
			await(lifecycle.Exited)
			e.Save(&lifecycle.Observed{}) // the exit is recorded: the process can be reaped
			lines := parse(t, place.LogFile(name, attempt))
			if len(lines) != 2 {
				t.Fatalf("start %d of %s wrote %v", attempt+1, name, lines)
			}
			for _, r := range lines {
				if r[2] != strconv.Itoa(want) {
					t.Errorf("start %d of %s: oom_score_adj %s, want %d", attempt+1, name, r[2], want)
				}
			}
		}
		if now := sandbox.OwnOOMScore(); now != own {
			t.Fatalf("start %d has changed the supervisor's own from %d to %d", attempt+1, own, now)
		}
	}
	e.Do(lifecycle.Action{Kind: lifecycle.RemoveSandbox})
	await(lifecycle.SandboxRemoved)
}

func TestMeter(t *testing.T) {
	const mi = 1 << 20
	limit := func(kind pod.LimitKind, name string, n int64) pod.Limit {
		return pod.Limit{Kind: kind, Name: name, Bytes: n, Message: string(kind) + " " + name}
	}
	plan := &pod.Plan{
		Volumes:        []pod.Volume{{Name: "v", Kind: pod.EmptyDir}, {Name: "none", Kind: pod.EmptyDir}, {Name: "m", Kind: pod.EmptyDirMemory}},
		InitContainers: []pod.Container{{Name: "i"}}, Containers: []pod.Container{{Name: "a"}, {Name: "b"}},
	}
	place := store.Dirs{Data: t.TempDir(), Runtime: t.TempDir()}.Pod("default", "p")
	for path, n := range map[string]int{
		filepath.Join(place.VolumesDir(), "v", "d", "f"):             2 * mi,
		filepath.Join(place.RootfsDir(), "a-3", "upper", "f"):        2 * mi,
		filepath.Join(place.RootfsDir(), "a-3", "merged", "image"):   9 * mi, // not written by the container
		filepath.Join(place.RootfsDir(), "a-2", "upper", "leftover"): 9 * mi,
		place.LogFile("a", 2): mi,
		place.LogFile("a", 3): mi,
		place.LogFile("i", 0): mi,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Repeat("x", n)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	deep := filepath.Join(place.VolumesDir(), "deep") + strings.Repeat("/d", 300)
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		limits []pod.Limit
		want   string
		sum    int64 // in MiB
	}{
		{"nothing exceeded", []pod.Limit{limit(pod.VolumeLimit, "v", 3*mi), limit(pod.PodLimit, "", 8*mi), limit(pod.ContainerLimit, "a", 5*mi)}, "", 7},
		{"a volume", []pod.Limit{limit(pod.VolumeLimit, "none", 1), limit(pod.VolumeLimit, "v", mi)}, "volume v", 2},
		{"a container: its layer and its logs", []pod.Limit{limit(pod.ContainerLimit, "b", 1), limit(pod.ContainerLimit, "a", 3*mi)}, "container a", 4},
		{"the pod: all of that, once", []pod.Limit{limit(pod.VolumeLimit, "v", 3*mi), limit(pod.PodLimit, "", 6*mi)}, "pod ", 7},
		{"the first counts", []pod.Limit{limit(pod.VolumeLimit, "v", 1), limit(pod.PodLimit, "", 1)}, "volume v", 2},
		{"what cannot be counted", []pod.Limit{limit(pod.VolumeLimit, "deep", 100*mi)}, "volume deep", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := diskMeter{store: place, rootfs: map[string]string{"a": "a-3"}}
			plan.Storage = tt.limits
			got, err := m.exceeded(plan)
			if err != nil || got != tt.want || m.sum.Bytes/mi != tt.sum {
				t.Errorf("got %q, %v, %d bytes in all; want %q, %d MiB", got, err, m.sum.Bytes, tt.want, tt.sum)
			}
		})
	}
}

// A pod whose volume exceeds its limit has failed, with the reason.
func TestEviction(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	a := shell(l, "a", "head -c 2000000 /dev/zero > /v/f; trap 'exit 0' TERM; while :; do sleep 0.05; done")
	a.Mounts = []pod.Mount{{Volume: "v", Path: "/v"}}
	plan := newPlan(nil, []pod.Container{a, shell(l, "b", "exec sleep 1000")})
	plan.RestartPolicy = pod.RestartAlways
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDir}}
	const message = `Usage of EmptyDir volume "v" exceeds the limit "1Mi". `
	plan.Storage = []pod.Limit{{Kind: pod.VolumeLimit, Name: "v", Bytes: 1 << 20, Message: message}}
	p := start(t, plan)
	st := p.ended()
	if st.Phase != pod.Failed || st.Reason != "Evicted" || st.Message != message {
		t.Errorf("%s %s %q", st.Phase, st.Reason, st.Message)
	}
	if c := st.Containers[0].State.Terminated; c == nil || c.ExitCode != 0 {
		t.Errorf("a had no time to end: %+v", c)
	}
	all, err := p.place.Events()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, e := range all {
		seen[e.Reason+" "+e.Container] = e.Message
	}
	for what, want := range map[string]string{"Evicted ": message, "Started a": "Container started", "Killing b": "Stopping container b"} {
		if got, ok := seen[what]; !ok || got != want {
			t.Errorf("event %q says %q, want %q; all: %v", what, got, want, seen)
		}
	}
}

// A pod that its node evicts has failed, with the reason, and a restart policy does not start it again. Before that the node can
// read what the pod has on disk.
func TestEvictionByNode(t *testing.T) {
	testenv.NoLeaks(t)
	a := shell(layer(t), "a", "mkdir /v/d && head -c 2000000 /dev/zero > /v/d/f; head -c 1000000 /dev/zero > /f; touch /v/done; exec sleep 1000")
	a.Mounts = []pod.Mount{{Volume: "v", Path: "/v"}}
	plan := newPlan(nil, []pod.Container{a})
	plan.RestartPolicy = pod.RestartAlways
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDir}}
	w := startWhole(t, plan)
	w.until(running)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(w.place.VolumesDir(), "v", "done")); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	conn := w.dial()
	if err := wire.WriteRequest(conn, wire.Request{Verb: wire.DiskUsage}); err != nil {
		t.Fatal(err)
	}
	frame, _, err := wire.ReadFrame(conn)
	if u := frame.DiskUsage; err != nil || u == nil || u.Bytes < 3_000_000 || u.Bytes > 4_000_000 || u.Inodes < 5 || u.Containers["a"] < 1_000_000 || u.Containers["a"] > 2_000_000 {
		t.Fatalf("%+v, %v", frame, err)
	}
	conn = w.dial()
	const message = "The node was low on resource: memory. "
	if err := wire.WriteRequest(conn, wire.Request{Verb: wire.Stop, Stop: &wire.StopRequest{GraceSeconds: new(int64), Evicted: message}}); err != nil {
		t.Fatal(err)
	}
	w.until(func(st *pod.Status) bool { return st.Phase == pod.Failed })
	st, err := w.place.Status()
	if err != nil || st.Reason != "Evicted" || st.Message != message {
		t.Errorf("%+v, %v", st, err)
	}
	events, err := w.place.Events()
	if err != nil || !slices.ContainsFunc(events, func(e pod.Event) bool { return e.Type == pod.Warning && e.Reason == "Evicted" && e.Message == message }) {
		t.Errorf("events %v, %v", events, err)
	}
}

// A hibernating supervisor wakes up to measure, and hibernation loses no event.
func TestHibernatingSupervisorEvicts(t *testing.T) {
	testenv.NoLeaks(t)
	a := shell(layer(t), "a", "read x < /v/fifo; head -c 2000000 /dev/zero > /v/f; exec sleep 1000")
	a.Mounts = []pod.Mount{{Volume: "v", Path: "/v"}}
	init := shell(a.Layers[0], "i", "mkfifo /v/fifo")
	init.Mounts = a.Mounts
	plan := newPlan([]pod.Container{init}, []pod.Container{a})
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDir}}
	plan.Storage = []pod.Limit{{Kind: pod.VolumeLimit, Name: "v", Bytes: 1 << 20, Message: "too much"}}
	w, _ := hibernated(t, plan)
	before, err := w.place.Events()
	if err != nil || len(before) == 0 {
		t.Fatalf("events while it hibernates: %v, %v", before, err)
	}
	fifo, err := os.OpenFile(filepath.Join(w.place.VolumesDir(), "v", "fifo"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fifo.Close()
	w.until(func(st *pod.Status) bool { return st.Phase == pod.Failed })
	after, err := w.place.Events()
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	var last time.Time
	for _, e := range after {
		count[e.Reason] += e.Count
		if e.Last.Before(last) {
			t.Errorf("events are not in order: %v", after)
		}
		last = e.Last
	}
	if count["Started"] != 2 || count["Evicted"] != 1 || count["Killing"] != 1 {
		t.Errorf("events: %v", after)
	}
}

// Each of the kubelet's safe sysctls holds in the pod, in all its containers, and nowhere else
// (pkg/kubelet/sysctl/safe_sysctls.go).
func TestSafeSysctls(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	plan := newPlan(nil, []pod.Container{shell(l, "a", "exec sleep 1000"), shell(l, "b", "exec sleep 1000")})
	plan.Sysctls = map[string]string{
		"kernel.shm_rmid_forced":              "1",
		"net.ipv4.ip_local_port_range":        "2000 60000",
		"net.ipv4.tcp_syncookies":             "0",
		"net.ipv4.ping_group_range":           "3 100",
		"net.ipv4.ip_unprivileged_port_start": "99",
		"net.ipv4.ip_local_reserved_ports":    "8080,9000-9100",
		"net.ipv4.tcp_keepalive_time":         "601",
		"net.ipv4.tcp_fin_timeout":            "31",
		"net.ipv4.tcp_keepalive_intvl":        "32",
		"net.ipv4.tcp_keepalive_probes":       "5",
		"net.ipv4.tcp_rmem":                   "4096 131073 6291457",
		"net.ipv4.tcp_wmem":                   "4096 16385 4194305",
		"net.ipv4.tcp_slow_start_after_idle":  "0",
		"net.ipv4.tcp_notsent_lowat":          "16385",
	}
	names := slices.Sorted(maps.Keys(plan.Sysctls))
	var script, want strings.Builder
	for _, name := range names {
		script.WriteString("echo $(cat /proc/sys/" + strings.ReplaceAll(name, ".", "/") + ");")
		want.WriteString(plan.Sysctls[name] + "\n")
	}
	w := startWhole(t, plan)
	other := startWhole(t, withName(newPlan(nil, []pod.Container{shell(l, "c", "exec sleep 1000")}), "q"))
	for _, w := range []wholePod{w, other} { // the cleanup waits for all processes
		defer w.removeBeside()
		w.until(running)
	}
	for _, c := range []string{"a", "b"} {
		if code, out := w.ask(c, "/bin/sh", "-c", script.String()); code != 0 || out != want.String() {
			t.Errorf("%s has, %d\n%swant\n%s", c, code, out, want.String())
		}
	}
	code, out := other.ask("c", "/bin/sh", "-c", script.String())
	lines := strings.Split(out, "\n")
	if code != 0 || len(lines) != len(names)+1 {
		t.Fatalf("%d %q", code, out)
	}
	for i, name := range names {
		if lines[i] == plan.Sysctls[name] {
			t.Errorf("%s is %s in another pod, too", name, lines[i])
		}
	}
}

// A container that is not root, and has no capability, can listen on port 80 and ping.
func TestLowPortsAndPingNeedNoRights(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	install(t, l, "anyuser")
	user := shell(l, "user", "exec sleep 1000")
	user.User, user.Capabilities = "1000:1000", nil
	w := startWhole(t, newPlan(nil, []pod.Container{user}))
	defer w.removeBeside()
	w.until(running)
	if code, out := w.ask("user", "anyuser"); code != 0 {
		t.Errorf("exit code %d: %s", code, out)
	}
}
