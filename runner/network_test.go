package runner

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/internal/testenv"
)

// A pod has an IPv4 and an IPv6 address in its status, in /etc/hosts and on its device, and keeps them when
// its supervisor is killed.
func TestAddresses(t *testing.T) {
	testenv.NoLeaks(t)
	w := startWhole(t, newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")}))
	w.until(running)
	st, err := w.place.Status()
	if err != nil {
		t.Fatal(err)
	}
	if len(st.PodIPs) != 2 || len(st.Warnings) > 0 {
		t.Fatalf("addresses %v, warnings %v", st.PodIPs, st.Warnings)
	}
	for _, file := range []string{"/bin/cat /etc/hosts", "/bin/ip addr show dev eth0"} {
		_, out := w.ask("a", strings.Fields(file)...)
		for _, a := range st.PodIPs {
			if !strings.Contains(out, netip.MustParseAddr(a).String()) {
				t.Errorf("%s lacks %s:\n%s", file, a, out)
			}
		}
	}
}

// neighbour starts another pod of the same user.
func (w wholePod) neighbour(name string, containers ...pod.Container) wholePod {
	w.t.Helper()
	return w.neighbourOf(newPlan(nil, containers), name)
}

func (w wholePod) neighbourOf(plan *pod.Plan, name string) wholePod {
	w.t.Helper()
	plan.Name, plan.UID, plan.Hostname = name, name, name
	n := wholePod{t: w.t, dirs: w.dirs, place: w.dirs.Pod(plan.Namespace, name)}
	if err := n.start(plan); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(n.removeBeside)
	return n
}

// podInitNS returns a namespace of the pod's init.
func (w wholePod) podInitNS(link string) string {
	w.t.Helper()
	pid, _, ok := w.place.PodInit()
	if !ok {
		w.t.Fatal("the pod has no pod init")
	}
	ns, err := os.Readlink(fmt.Sprintf("/proc/%d/%s", pid, link))
	if err != nil {
		w.t.Fatal(err)
	}
	return ns
}

// get sends requests to a web server from inside the pod until there is an answer.
func (w wholePod) get(server netip.Addr) (out string, err error) {
	pid, _, ok := w.place.PodInit()
	if !ok {
		return "", errors.New("the pod has no pod init")
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var c net.Conn
		err = nsthread.Do(func() (err error) {
			c, err = dialHere(netip.AddrPortFrom(server, 80))
			return err
		}, fmt.Sprintf("/proc/%d/fd/5", pid))
		if err == nil {
			defer c.Close()
			c.SetDeadline(deadline)
			io.WriteString(c, "GET /word HTTP/1.0\r\n\r\n")
			b, err := io.ReadAll(c)
			return string(b), err
		}
		if time.Now().After(deadline) {
			return "", err
		}
	}
}

// dialHere connects on the calling thread: net.Dial may use others.
func dialHere(to netip.AddrPort) (net.Conn, error) {
	family := unix.AF_INET
	if to.Addr().Is6() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 10}); err != nil {
		return nil, err
	}
	if err := unix.Connect(fd, rawsys.Sockaddr(to)); err != nil {
		return nil, err
	}
	return net.FileConn(f)
}

// The pods of a user are in one user namespace and have one router. They reach each other by their
// addresses, even while supervisors die.
func TestNeighbours(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	a := startWhole(t, newPlan(nil, []pod.Container{shell(l, "a", "exec sleep 1000")}))
	b := a.neighbour("b", shell(l, "b", "echo word > /tmp/word; httpd -f -p 80 -h /tmp"))
	a.until(running)
	b.until(running)
	for _, link := range []string{"ns/user", "fd/8"} {
		if x, y := a.podInitNS(link), b.podInitNS(link); x != y {
			t.Errorf("%s: %s and %s", link, x, y)
		}
	}
	if x, y := a.podInitNS("fd/5"), b.podInitNS("fd/5"); x == y {
		t.Errorf("they share the network %s", x)
	}
	st, err := b.place.Status()
	if err != nil || len(st.PodIPs) != 2 {
		t.Fatalf("status %+v, %v", st, err)
	}
	fetch := func(when string) {
		t.Helper()
		for _, ip := range st.PodIPs {
			if out, err := a.get(netip.MustParseAddr(ip)); err != nil || !strings.HasSuffix(out, "word\n") {
				t.Errorf("%s: from %s: %q, %v", when, ip, out, err)
			}
		}
	}
	fetch("at first")
	supervisor, _ := b.processes()
	if err := unix.Kill(supervisor, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	fetch("after the death of a supervisor")
}

// aServer starts a server in this process's network, until the test ends.
func aServer(t *testing.T, address netip.AddrPort) {
	t.Helper()
	l, err := net.Listen("tcp", address.String())
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "word\n") })}
	s.SetKeepAlivesEnabled(false)
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(l) }()
	t.Cleanup(func() { s.Close(); <-done })
}

// A pod reaches the host's network again at once after the death of its supervisor, and wakes a hibernating
// one. It never reaches servers on the host's loopback.
func TestTheWorld(t *testing.T) {
	testenv.NoLeaks(t)
	t.Setenv("PODRUN_HIBERNATE_AFTER", "50ms")
	testenv.LoopbackUp(t)
	remoteHost(t)
	host := netip.MustParseAddr("10.77.0.1")
	aServer(t, netip.AddrPortFrom(host, 80))
	aServer(t, netip.MustParseAddrPort("127.0.0.1:80"))
	w := startWhole(t, newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")}))
	w.until(running)
	fetch := func(when string) {
		t.Helper()
		if out, err := w.get(host); err != nil || !strings.HasSuffix(out, "word\n") {
			t.Errorf("%s: %q, %v", when, out, err)
		}
	}
	fetch("at first")
	for range 3 {
		supervisor, _ := w.processes()
		if err := unix.Kill(supervisor, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		fetch("after the death of a supervisor")
	}
	_, podInit := w.processes()
	for range 3 {
		for deadline := time.Now().Add(time.Minute); supervisorOf(podInit) != 0; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the supervisor does not hibernate within 20 s")
			}
		}
		fetch("while the supervisor hibernated")
	}
}

// A pod whose init is killed is recreated with its addresses, and others can reach it.
func TestAddressesOutliveThePodInit(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	a := startWhole(t, newPlan(nil, []pod.Container{shell(l, "a", "exec sleep 1000")}))
	serve := shell(l, "b", "echo word > /tmp/word; httpd -f -p 80 -h /tmp")
	plan := newPlan(nil, []pod.Container{serve})
	plan.RestartPolicy = pod.RestartAlways
	b := a.neighbourOf(plan, "b")
	a.until(running)
	b.until(running)
	st, err := b.place.Status()
	if err != nil {
		t.Fatal(err)
	}
	before := b.podInitNS("fd/5")
	pid, _, _ := b.place.PodInit()
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, ip := range st.PodIPs {
		var out string
		for deadline := time.Now().Add(time.Minute); !strings.HasSuffix(out, "word\n") && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			out, err = a.get(netip.MustParseAddr(ip))
		}
		if !strings.HasSuffix(out, "word\n") {
			t.Errorf("from %s: %q, %v", ip, out, err)
		}
	}
	if after := b.podInitNS("fd/5"); after == before {
		t.Error("it is in the same network")
	}
	if x, y := a.podInitNS("fd/8"), b.podInitNS("fd/8"); x != y {
		t.Errorf("routers: %s and %s", x, y)
	}
}

// remoteHost makes another host, at 10.77.0.2 and fd77::2; this one is at 10.77.0.1 and fd77::1. It returns
// the other's network namespace.
func remoteHost(t *testing.T) string {
	t.Helper()
	var fd int
	err := nsthread.Do(func() (err error) { // no child process: the tests reap all children as the pod's
		if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			fd, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	ns := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd)
	ip := func(line string) {
		t.Helper()
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", line, err, out)
		}
	}
	ip("link add remote type veth peer name eth0 netns " + ns)
	t.Cleanup(func() { ip("link del remote") })
	ip("addr add 10.77.0.1/24 dev remote")
	ip("addr add fd77::1/64 dev remote nodad")
	ip("link set remote up")
	err = nsthread.Do(func() error {
		ip("addr add 10.77.0.2/24 dev eth0")
		ip("addr add fd77::2/64 dev eth0 nodad")
		ip("link set eth0 up")
		return nil
	}, ns)
	if err != nil {
		t.Fatal(err)
	}
	return ns
}
