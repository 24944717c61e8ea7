package runner

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// forwarding is put back when the test has ended: what is set stays set.
func forwarding(t *testing.T) {
	t.Helper()
	const file = "/proc/sys/net/ipv4/ip_forward"
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, line := range []string{"ip -o link show type veth", "nft list tables"} {
			out, err := exec.Command("sh", "-c", line).CombinedOutput()
			if err != nil || strings.Contains(string(out), "podrun") {
				t.Errorf("left behind: %s (%v)", out, err)
			}
		}
		if err := os.WriteFile(file, was, 0); err != nil {
			t.Error(err)
		}
	})
}

// leaving is a pod whose packets leave by the kernel. It has a port of the host.
func leaving(t *testing.T) *pod.Plan {
	plan := serving(t)
	plan.Network = pod.NetworkMasquerade
	return plan
}

// Where the kernel leads out what a pod sends, no supervisor has a part in it: none is
// woken, and none is missed. What needs one finds it as ever.
func TestMasquerade(t *testing.T) {
	testenv.NoLeaks(t)
	forwarding(t)
	answering(t, remoteHost(t), 7000)
	w, keeper := drowsy(t, leaving(t))
	var fd int
	inPod := fmt.Sprintf("/proc/%d/fd/5", keeper)
	err := nsthread.Do(func() (err error) {
		if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		patience := unix.Timeval{Sec: 60}
		if err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience); err == nil {
			err = unix.Connect(fd, rawsys.Sockaddr(netip.MustParseAddrPort("10.77.0.2:7000")))
		}
		return err
	}, inPod)
	defer unix.Close(fd)
	if err != nil {
		t.Fatal(err)
	}
	if pid := supervisorOf(keeper); pid != 0 {
		t.Error("a connection has woken the supervisor")
	}
	supervisor := w.wakeUp(keeper)
	w.murder(supervisor, keeper)
	if _, err := unix.Write(fd, []byte("on\n")); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 100)
	n, err := unix.Read(fd, answer)
	if said := string(answer[:max(n, 0)]); err != nil || !strings.HasPrefix(said, "tcp ") || !strings.Contains(said, "10.77.0.1") || !strings.HasSuffix(said, "on\n") {
		t.Errorf("after the supervisor's death %q came, %v", said, err)
	}
	w.until(func(st *pod.Status) bool { return st.Network == pod.NetworkMasquerade })
	served(t, time.Minute)
	for ask, want := range map[string]string{
		"nc -w 60 fd77::2 7000 < /etc/hostname": "tcp ",
		`printf "GET / HTTP/1.0

" | nc -w 60 10.77.0.1 8080`: "hello", // its own port of the host
		"nslookup pod.default.svc 2>&1 | grep -c 10.88.0.1": "2",
	} {
		if _, out := w.ask("a", "/bin/sh", "-c", ask); !strings.Contains(out, want) {
			t.Errorf("%s: %q", ask, out)
		}
	}
}

// wakeUp has a supervisor begin.
func (w wholePod) wakeUp(keeper int) int {
	w.t.Helper()
	w.ask("a", "/bin/true")
	return w.awake(keeper)
}

// The way out is there as long as any pod needs it, and no longer.
func TestOneWayOutForAll(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	forwarding(t)
	answering(t, remoteHost(t), 7000)
	plans := []*pod.Plan{}
	for range 3 {
		plan := newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000000")})
		plan.Network = pod.NetworkMasquerade
		plans = append(plans, plan)
	}
	w := startWhole(t, plans[0])
	w.until(running)
	reaches := func(w wholePod) {
		t.Helper()
		if _, out := w.ask("a", "/bin/sh", "-c", "echo hi | nc -w 60 10.77.0.2 7000"); !strings.HasPrefix(out, "tcp ") {
			t.Errorf("%q", out)
		}
	}
	var second wholePod
	var both sync.WaitGroup
	both.Go(func() { second = w.neighbourOf(plans[1], "second") })
	both.Go(w.removeBeside) // while another one starts
	both.Wait()
	second.until(running)
	reaches(second)
	third := w.neighbourOf(plans[2], "third")
	third.until(running)
	reaches(third)
	second.removeBeside()
	reaches(third)
	// Whoever removes rules that are not his harms nobody for long.
	if out, err := exec.Command("nft", "flush", "ruleset").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	supervisor, keeper := third.processes()
	third.murder(supervisor, keeper)
	for deadline := time.Now().Add(time.Minute); ; {
		out, err := exec.Command("nft", "list", "tables").CombinedOutput()
		if strings.Contains(string(out), "podrun0") {
			break
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the rules do not come back: %s (%v)", out, err)
		}
	}
	reaches(third)
}

// The way out of a pod that was killed with everything of it goes when the pod goes on, and
// needs none.
func TestWayOutAfterACrash(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	forwarding(t)
	plans := []*pod.Plan{}
	for _, mode := range []pod.NetworkMode{pod.NetworkMasquerade, pod.NetworkTProxy} {
		plan := newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000000")})
		plan.Network, plan.RestartPolicy = mode, pod.RestartOnFailure
		plans = append(plans, plan)
	}
	w := startWhole(t, plans[0])
	w.until(running)
	second := w.neighbourOf(plans[1], "second") // keeps the router
	second.until(running)
	there := func() bool {
		t.Helper()
		out, err := exec.Command("nft", "list", "tables").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.Contains(string(out), "podrun0")
	}
	_, keeper := w.processes()
	kill9(t, w.guardOf(keeper))
	kill9(t, keeper)
	for deadline := time.Now().Add(time.Minute); w.place.Alive(); {
		if time.Now().After(deadline) {
			t.Fatal("the pod lives")
		}
	}
	if !there() {
		t.Error("the way out has gone by itself: this test proves nothing")
	}
	plan := *plans[0]
	plan.Network = pod.NetworkTProxy
	w.again(&plan)
	w.untilAgain("running again", running)
	if there() {
		t.Error("the way out of the earlier life is there")
	}
}

// Where the host has a firewall, who asks for it is told what is in the way.
func TestNoMasquerade(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	forwarding(t)
	nft := func(line string) {
		t.Helper()
		if out, err := exec.Command("nft", line).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
	}
	nft("add table inet guard")
	defer nft("delete table inet guard")
	nft("add chain inet guard way { type filter hook forward priority 0; policy drop; }")
	plan := newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000000")})
	plan.Network = pod.NetworkMasquerade
	w := startWhole(t, plan)
	w.until(func(st *pod.Status) bool {
		b, _ := os.ReadFile(w.place.SupervisorLog())
		return strings.Contains(fmt.Sprintf("%+v %s", st, b), "guard way drops")
	})
}
