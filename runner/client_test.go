package runner

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/testenv"
)

// The pod sees a remote client's own address, for both families, TCP and UDP.
func TestThePodSeesTheClient(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	ns := remoteHost(t)
	plan := newPlan(nil, []pod.Container{shell(layer(t), "a",
		"exec nc -ll -p 80 -e /bin/sh -c 'read x; cat /proc/net/tcp /proc/net/tcp6'")})
	plan.Ports = []pod.Port{{Container: "a", Protocol: "TCP", Number: 80, HostPort: 8080}, {Container: "a", Protocol: "UDP", Number: 53, HostPort: 8080}}
	w := startWhole(t, plan)
	w.until(running)
	// In the format of /proc/net/tcp6, on a machine of either byte order.
	for to, want := range map[string]string{"10.77.0.1": "02004D0A|0A4D0002", "fd77::1": "000077FD000000000000000002000000|FD770000000000000000000000000002"} {
		var said []byte
		var err error
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
			if said, err = askFrom(ns, "tcp", net.JoinHostPort(to, "8080")); err == nil && len(said) > 0 {
				break
			}
		}
		if err != nil || !regexp.MustCompile(want).Match(said) {
			t.Errorf("%s: no connection from the client: %v\n%s", to, err, said)
		}
	}
	w.echoOrigin(53)
	for to, want := range map[string]string{"10.77.0.1": "udp 10.77.0.2:", "fd77::1": "udp [fd77::2]:"} {
		if said, err := askFrom(ns, "udp", net.JoinHostPort(to, "8080")); err != nil || !strings.HasPrefix(string(said), want) {
			t.Errorf("UDP, %s: the pod saw %q: %v", to, said, err)
		}
	}
}

// echoOrigin answers datagrams and connections in the pod with their source address.
func (w wholePod) echoOrigin(port int) {
	w.t.Helper()
	_, podInit := w.processes()
	answering(w.t, fmt.Sprintf("/proc/%d/fd/5", podInit), port)
}

// askFrom sends a line and returns the answer, to end of file or one datagram.
func askFrom(ns, network, to string) (said []byte, err error) {
	var c net.Conn
	err = nsthread.Do(func() (err error) {
		c, err = net.Dial(network, to)
		return err
	}, ns)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	deadline := time.Now().Add(time.Minute)
	for {
		c.SetDeadline(deadline)
		if network != "tcp" { // a datagram may be lost: it is sent again
			c.SetDeadline(time.Now().Add(time.Second))
		}
		if _, err := fmt.Fprintln(c, "?"); err != nil {
			return nil, err
		}
		if network == "tcp" {
			return io.ReadAll(c)
		}
		b := make([]byte, 1000)
		n, err := c.Read(b)
		if err == nil || time.Now().After(deadline) {
			return b[:n], err
		}
	}
}

// A client on the host's loopback has the gateway's address in the pod; the pod reaches nothing there but
// the client's own connection.
func TestTheGatewayIsTheClient(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	plan := newPlan(nil, []pod.Container{shell(layer(t), "a",
		`mkdir -p /tmp/cgi-bin; printf '#!/bin/sh\necho; echo $REMOTE_ADDR' > /tmp/cgi-bin/who; chmod 755 /tmp/cgi-bin/who; exec httpd -f -p 80 -h /tmp`)})
	plan.Ports = []pod.Port{{Container: "a", Protocol: "TCP", Number: 80, HostPort: 8080}}
	w := startWhole(t, plan)
	w.until(running)
	st, err := w.place.Status()
	if err != nil || len(st.PodIPs) == 0 {
		t.Fatalf("the pod has no address: %v", err)
	}
	podAddr := netip.MustParseAddr(st.PodIPs[0]).As4()
	gateway := netip.AddrFrom4([4]byte{podAddr[0], podAddr[1], 0, 1}).String()
	var said string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if said, err = get("/cgi-bin/who"); err == nil {
			break
		}
	}
	if err != nil || !strings.Contains(said, gateway) {
		t.Errorf("the pod saw %q, want %s: %v", said, gateway, err)
	}
	if code, out := w.ask("a", "/bin/nc", "-w", "1", gateway, "80"); code == 0 {
		t.Errorf("the gateway listens: %s", out)
	}
	supervisor, podInit := w.processes()
	if err := unix.Kill(supervisor, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for supervisorOf(podInit) == supervisor {
	}
	if said, err = get("/cgi-bin/who"); err != nil || !strings.Contains(said, gateway) {
		t.Errorf("after a supervisor's death the pod saw %q: %v", said, err)
	}
}
