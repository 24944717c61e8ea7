package runner

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/internal/testenv"
)

// forwarding restores the forwarding sysctls when the test ends, because they stay set otherwise.
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

// masqueraded returns a pod whose packets leave through the kernel. It has a host port.
func masqueraded(t *testing.T) *pod.Plan {
	plan := serving(t)
	plan.Network = pod.NetworkMasquerade
	return plan
}

// Where the kernel forwards what a pod sends, no supervisor is involved: none is woken, and none is needed.
// What does need a supervisor works as always.
func TestMasquerade(t *testing.T) {
	testenv.NoLeaks(t)
	forwarding(t)
	answering(t, remoteHost(t), 7000)
	w, podInit := hibernated(t, masqueraded(t))
	var fd int
	inPod := fmt.Sprintf("/proc/%d/fd/5", podInit)
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
	if pid := supervisorOf(podInit); pid != 0 {
		t.Error("a connection has woken the supervisor")
	}
	supervisor := w.wakeUp(podInit)
	w.killSupervisor(supervisor, podInit)
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

" | nc -w 60 10.77.0.1 8080`: "hello", // its own host port
		"nslookup pod.default.svc 2>&1 | grep -c 10.88.0.1": "2",
	} {
		if _, out := w.ask("a", "/bin/sh", "-c", ask); !strings.Contains(out, want) {
			t.Errorf("%s: %q", ask, out)
		}
	}
}

// wakeUp makes pod init start a supervisor.
func (w wholePod) wakeUp(podInit int) int {
	w.t.Helper()
	w.ask("a", "/bin/true")
	return w.awake(podInit)
}

// The masquerade device exists exactly as long as any pod needs it.
func TestMasqueradeDeviceIsShared(t *testing.T) {
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
	// Rules that another program removes are restored soon.
	if out, err := exec.Command("nft", "flush", "ruleset").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	supervisor, podInit := third.processes()
	third.killSupervisor(supervisor, podInit)
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

// The masquerade device of a pod whose processes were all killed is removed when the pod goes on without needing it.
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
	_, podInit := w.processes()
	kill9(t, w.monitorOf(podInit))
	kill9(t, podInit)
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

// Where the host has a firewall, a request for masquerading returns an error that names the obstacle.
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
	nft("add table inet egress")
	defer nft("delete table inet egress")
	nft("add chain inet egress way { type filter hook forward priority 0; policy drop; }")
	plan := newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000000")})
	plan.Network = pod.NetworkMasquerade
	w := startWhole(t, plan)
	w.until(func(st *pod.Status) bool {
		b, _ := os.ReadFile(w.place.SupervisorLog())
		return strings.Contains(fmt.Sprintf("%+v %s", st, b), "egress way drops")
	})
}

// answering starts a server in a network namespace that answers with the client's address, by TCP and by
// UDP.
func answering(t *testing.T, ns string, port int) {
	t.Helper()
	var l *net.TCPListener
	var u *net.UDPConn
	err := nsthread.Do(func() (err error) {
		// The address is given explicitly. Go checks for IPv6 once; in a namespace whose loopback is down it finds
		// none, and then listens on no address of IPv6 anywhere.
		if l, err = net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv6unspecified, Port: port}); err == nil {
			u, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv6unspecified, Port: port})
		}
		return err
	}, ns)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{}, 2)
	t.Cleanup(func() {
		l.Close()
		u.Close()
		<-done
		<-done
	})
	go func() {
		defer func() { done <- struct{}{} }()
		for {
			c, err := l.AcceptTCP()
			if err != nil {
				return
			}
			line := make([]byte, 1000)
			n, _ := c.Read(line)
			if said := string(line[:n]); strings.HasPrefix(said, "bulk") {
				io.CopyN(c, zeros{}, 20<<20)
			} else {
				fmt.Fprintf(c, "tcp %v %s", c.RemoteAddr(), said)
			}
			c.Close()
		}
	}()
	go func() {
		defer func() { done <- struct{}{} }()
		for {
			b := make([]byte, 1000)
			n, from, err := u.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			u.WriteToUDPAddrPort(fmt.Appendf(nil, "udp %v %s", netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), b[:n]), from)
		}
	}()
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// A network stack in user space does what the kernel does elsewhere: egress, ingress with the client's
// address, after a supervisor's death and after hibernation.
func TestNetstack(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	remote := remoteHost(t)
	answering(t, remote, 7000)
	answering(t, "/proc/thread-self/ns/net", 7001)
	t.Setenv("PODRUN_HIBERNATE_AFTER", "50ms")
	plan := newPlan(nil, []pod.Container{shell(layer(t), "a", "exec nc -ll -p 80 -e /bin/sh -c 'read x; cat /proc/net/tcp /proc/net/tcp6'")})
	plan.Network = pod.NetworkNetstack
	plan.Ports = []pod.Port{{Container: "a", Protocol: "TCP", Number: 80, HostPort: 8080}, {Container: "a", Protocol: "UDP", Number: 53, HostPort: 8080}}
	w := startWhole(t, plan)
	w.until(running)
	w.echoOrigin(53)
	for round, then := range []func(supervisor, podInit int){
		func(_, podInit int) { w.asleep(podInit) },
		func(supervisor, podInit int) { w.killSupervisor(supervisor, podInit) },
		nil,
	} {
		for name, c := range map[string]struct{ script, want string }{
			"TCP":      {"echo hi | nc 10.77.0.2 7000", "^tcp 10.77.0.1:[0-9]+ hi\n$"},
			"TCP6":     {"echo hi | nc fd77::2 7000", `^tcp \[fd77::1\]:[0-9]+ hi` + "\n$"},
			"bulk":     {"echo bulk | nc 10.77.0.2 7000 | wc -c", "^20971520\n$"},
			"refused":  {"nc -w 5 10.77.0.2 7999 2>&1; echo $?", "refused\n1\n$"},
			"loopback": {"for a in 127.0.0.1 169.254.1.2 169.254.1.1 $GATEWAY; do echo hi | nc -w 2 $a 7001 2>&1; done", "^(nc: [^\n]*\n)*$"},
		} {
			if _, out := w.ask("a", "/bin/sh", "-c", c.script); !regexp.MustCompile(c.want).MatchString(out) {
				t.Errorf("round %d, %s: %q", round, name, out)
			}
		}
		for to, want := range map[string]string{"10.77.0.1": "02004D0A|0A4D0002", "fd77::1": "000077FD000000000000000002000000|FD770000000000000000000000000002"} {
			said, err := askFrom(remote, "tcp", net.JoinHostPort(to, "8080"))
			if err != nil || !regexp.MustCompile(want).Match(said) {
				t.Errorf("round %d, %s: no connection from the client: %v\n%s", round, to, err, said)
			}
		}
		if c, err := net.DialTimeout("tcp", "127.0.0.1:8080", time.Minute); err != nil {
			t.Error(err)
		} else {
			c.SetDeadline(time.Now().Add(time.Minute))
			fmt.Fprintln(c)
			if b, err := io.ReadAll(c); err != nil || len(b) == 0 {
				t.Errorf("round %d, from the loopback: %d bytes: %v", round, len(b), err)
			}
			c.Close()
		}
		if then != nil {
			supervisor, podInit := w.processes()
			then(supervisor, podInit)
			continue
		}
		if said, err := askFrom(remote, "udp", "10.77.0.1:8080"); err != nil || !strings.HasPrefix(string(said), "udp 10.77.0.2:") {
			t.Errorf("round %d, UDP: the pod saw %q: %v", round, said, err)
		}
	}
}

// withoutNftables calls f on a thread that, like all processes it starts, sees a kernel built without
// nftables: such sockets fail with EPROTONOSUPPORT.
func withoutNftables(t *testing.T, f func() error) error {
	t.Helper()
	const number, domain, protocol = 0, 16, 32 // offsets in seccomp_data(2), little-endian
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_SOCKET, Jf: 5},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: domain},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.AF_NETLINK, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: protocol},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.NETLINK_NETFILTER, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

// Where the kernel lacks what connects pods, the network stack in user space is chosen automatically, and
// the user gets the reason.
func TestNetstackIsChosen(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	answering(t, remoteHost(t), 7000)
	plan := newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000000")})
	w := newWhole(t, plan)
	if err := withoutNftables(t, func() error { return w.start(plan) }); err != nil {
		t.Fatal(err)
	}
	w.until(running)
	st, err := w.place.Status()
	if err != nil || !slices.ContainsFunc(st.Warnings, func(said string) bool {
		return strings.HasPrefix(said, "the pod's network is a user-space stack") && strings.Contains(said, "modprobe")
	}) {
		t.Errorf("warnings %q: %v", st.Warnings, err)
	}
	if _, out := w.ask("a", "/bin/sh", "-c", "echo hi | nc 10.77.0.2 7000"); !regexp.MustCompile("^tcp 10.77.0.1:[0-9]+ hi\n$").MatchString(out) {
		t.Errorf("%q", out)
	}
}
