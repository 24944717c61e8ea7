package runner

import (
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// answering is a server in a network that says from where it is asked, by TCP and by UDP.
func answering(t *testing.T, ns string, port int) {
	t.Helper()
	var l *net.TCPListener
	var u *net.UDPConn
	err := nsthread.Do(func() (err error) {
		// Said in full: whether there is IPv6, Go may have found out before there was.
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
			u.WriteToUDPAddrPort(fmt.Appendf(nil, "udp %v %s", from, b[:n]), from)
		}
	}()
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// What the kernel does for a pod where it can, a stack in user space does elsewhere: out,
// in with the client's address, after a supervisor's death and a sleep.
func TestNetstack(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	remote := remoteHost(t)
	answering(t, remote, 7000)
	answering(t, "/proc/thread-self/ns/net", 7001)
	t.Setenv("PODRUN_DOZE_AFTER", "50ms")
	plan := newPlan(nil, []pod.Container{shell(layer(t), "a", "exec nc -ll -p 80 -e /bin/sh -c 'read x; cat /proc/net/tcp /proc/net/tcp6'")})
	plan.Network = pod.NetworkNetstack
	plan.Ports = []pod.Port{{Container: "a", Protocol: "TCP", Number: 80, HostPort: 8080}, {Container: "a", Protocol: "UDP", Number: 53, HostPort: 8080}}
	w := startWhole(t, plan)
	w.until(running)
	w.echoOrigin(53)
	for round, then := range []func(supervisor, keeper int){
		func(_, keeper int) { w.asleep(keeper) },
		func(supervisor, keeper int) { w.murder(supervisor, keeper) },
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
			supervisor, keeper := w.processes()
			then(supervisor, keeper)
			continue
		}
		if said, err := askFrom(remote, "udp", "10.77.0.1:8080"); err != nil || !strings.HasPrefix(string(said), "10.77.0.2:") {
			t.Errorf("round %d, UDP: the pod saw %q: %v", round, said, err)
		}
	}
}
