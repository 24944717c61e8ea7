package netpolicy

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nettest"
)

// ingressTo and egressFrom return policies for the pod of a name.
func ingressTo(name string, rules ...Rule) Policy {
	return Policy{Namespace: "default", Pods: byLabel("name", name), IsolatesIngress: true, Ingress: rules}
}

func egressFrom(name string, rules ...Rule) Policy {
	return Policy{Namespace: "default", Pods: byLabel("name", name), IsolatesEgress: true, Egress: rules}
}

func peer(name string) Peer { return Peer{Pods: byLabel("name", name)} }

// Both families, TCP and UDP, between pods.
func TestBetweenPods(t *testing.T) {
	w := newTestbed(t, "a", "b", "c")
	for _, name := range []string{"a", "b", "c"} {
		w.serve(name, 80, 81, 82)
	}
	w.apply()
	w.check(true, "a b", "b a", "c b UDP/81")
	w.apply(ingressTo("b"))
	w.check(false, "a b", "c b", "c b UDP/80")
	w.check(true, "b a", "b c UDP/80", "a c", "c a")
	w.apply(ingressTo("b", Rule{[]Peer{peer("a")}, []Port{tcp(80), {"UDP", "", 81, 82}}}))
	w.check(true, "a b", "a b UDP/81", "a b UDP/82", "b c")
	w.check(false, "a b TCP/81", "a b UDP/80", "c b", "c b UDP/81")
	w.apply(egressFrom("a", Rule{Peers: []Peer{peer("c")}}))
	w.check(true, "a c", "a c UDP/80", "b a", "b a UDP/80")
	w.check(false, "a b", "a b UDP/80")
	w.apply(egressFrom("a", Rule{Peers: []Peer{peer("c")}}), ingressTo("c", Rule{Peers: []Peer{peer("b")}}))
	w.check(false, "a c", "a b")
	w.check(true, "b c", "b a")
	w.apply()
	w.check(true, "a b", "b c", "a c UDP/80")
}

func currentTables(t *testing.T, router string) (names string) {
	nettest.Do(t, router, func() error {
		old, err := currentTable()
		if old.table != nil {
			names = old.table.Name
		}
		return err
	})
	return names
}

// isReset reports whether an error is the end of a connection.
func isReset(err error) bool {
	return errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) || errors.Is(err, io.EOF)
}

// A change applies to running connections: connections that it does not allow end, others continue. That
// includes connections from before the first policy, when the kernel tracked none.
func TestRunningConnections(t *testing.T) {
	t.Run("IPv4", func(t *testing.T) { testRunningConnections(t, false) })
	t.Run("IPv6", func(t *testing.T) { testRunningConnections(t, true) })
}

func testRunningConnections(t *testing.T, six bool) {
	w := newTestbed(t, "a", "b", "c")
	w.serve("b", 80, 50051)
	w.serve("c", 80)
	ab, cb, high, bc := w.dial("a", "b", 80, six), w.dial("c", "b", 80, six), w.dial("c", "b", 50051, six), w.dial("b", "c", 80, six)
	w.apply(ingressTo("b", Rule{Peers: []Peer{peer("a")}}))
	alive(t, "a b", ab)
	cut(t, "c b", cb)
	cut(t, "c b, a high port", high)
	alive(t, "b c, which b has started", bc)
	later := w.dial("a", "b", 50051, six)
	w.apply(ingressTo("b", Rule{[]Peer{peer("a")}, []Port{tcp(80)}}))
	alive(t, "a b", ab)
	cut(t, "a b, a high port", later)
	alive(t, "b c", bc)
	w.apply(ingressTo("b", Rule{[]Peer{peer("a")}, []Port{tcp(80)}}), egressFrom("b", Rule{Peers: []Peer{peer("a")}}))
	alive(t, "a b", ab)
	cut(t, "b c", bc)
	w.apply(egressFrom("a"))
	cut(t, "a b", ab)
}

// The supervisor of one pod isolates the others too, without a list of their ports: their connections continue
// until their own supervisors list them.
func TestRunningConnectionsOfOthers(t *testing.T) {
	w := newTestbed(t, "a", "b")
	w.serve("b", 80)
	allowed, refused := w.dial("a", "b", 80, false), w.dial("a", "b", 80, true)
	w.catalog.Policies = []Policy{ingressTo("b", Rule{Peers: []Peer{{Block: block("0.0.0.0/0")}}}), egressFrom("b")}
	if _, err := Apply(w.RouterNS, w.catalog.Isolate(), w.catalog.Pods[0].Device, nil); err != nil {
		t.Fatal(err)
	}
	alive(t, "a b", allowed)
	alive(t, "a b by IPv6", refused)
	w.apply(w.catalog.Policies...)
	alive(t, "a b", allowed)
	cut(t, "a b by IPv6", refused)
}

// A new pod listens on a port, and sends segments from it that belong to no connection: after the first policy it
// can have no connection whose first packet the rules have not seen. The pod that had its device before does not
// matter.
func TestBareSegments(t *testing.T) {
	w := newTestbed(t, "a", "b", "c")
	w.serve("b", 80)
	policies := []Policy{ingressTo("a"), egressFrom("b", Rule{[]Peer{peer("c")}, []Port{tcp(81)}})}
	w.catalog.Policies = policies
	isNew := func() {
		t.Helper()
		if _, err := Apply(w.RouterNS, w.catalog.Isolate(), w.catalog.Pods[1].Device, nil); err != nil {
			t.Fatal(err)
		}
	}
	receiver := rawTCP(t, w.pods["c"])
	check := func(when string, leaves bool) {
		t.Helper()
		w.sendBare("b", "c", 80, 8080)
		w.sendBare("b", "c", 1234, 81) // allowed
		want := uint16(81)
		if leaves {
			want = 8080
		}
		for _, port := range []uint16{want, 81} {
			if got := receivePort(t, receiver); got != port {
				t.Fatalf("%s: port %d received a segment, want %d", when, got, port)
			}
			if !leaves {
				break
			}
		}
	}
	w.apply(policies...)
	check("a pod from before the first policy", true)
	isNew()
	w.apply(policies...)
	check("a new pod", false)
}

// rawTCP returns a socket that receives every TCP segment of a network.
func rawTCP(t *testing.T, ns string) (fd int) {
	t.Helper()
	nettest.Do(t, ns, func() (err error) {
		if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP); err == nil {
			err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 30})
		}
		return err
	})
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// receivePort returns the port of the next segment with data.
func receivePort(t *testing.T, fd int) uint16 {
	t.Helper()
	for packet := make([]byte, 1500); ; {
		n, err := unix.Read(fd, packet)
		if err != nil {
			t.Fatal(err)
		}
		if segment := packet[4*(packet[0]&15) : n]; len(segment) > 20 {
			return binary.BigEndian.Uint16(segment[2:])
		}
	}
}

// sendBare sends a TCP segment with data that belongs to no connection.
func (w *testbed) sendBare(from, to string, source, port uint16) {
	w.t.Helper()
	src, dst := w.catalog.find(from)[0].As4(), w.catalog.find(to)[0].As4()
	segment := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, source), port)
	segment = append(segment, 0, 0, 0, 1, 0, 0, 0, 1, 5<<4, 0x18, 1, 0, 0, 0, 0, 0) // ACK and PSH
	segment = append(segment, "secret"...)
	sum := uint32(unix.IPPROTO_TCP + len(segment))
	for _, part := range [][]byte{src[:], dst[:], segment} {
		for i := 0; i < len(part); i += 2 {
			sum += uint32(binary.BigEndian.Uint16(part[i:]))
		}
	}
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(segment[16:], ^uint16(sum&0xffff+sum>>16))
	nettest.Do(w.t, w.pods[from], func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, segment, 0, &unix.SockaddrInet4{Addr: dst})
	})
}

// alive requires that a connection continues, cut that it has ended.
// alive checks that a connection carries data, and sends its acknowledgement at once: a delayed one would be reset by
// rules that the test applies meanwhile.
func alive(t *testing.T, name string, c net.Conn) {
	t.Helper()
	if err := nettest.RoundTrip(c, []byte("more")); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	cerr := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1) })
	if err := errors.Join(cerr, err); err != nil {
		t.Fatal(err)
	}
}

func cut(t *testing.T, name string, c net.Conn) {
	t.Helper()
	if err := nettest.RoundTrip(c, []byte("more")); err == nil || !isReset(err) {
		t.Errorf("%s: %v, want a reset", name, err)
	}
}

// A server that only sends is stopped, too.
func TestStreamFromServer(t *testing.T) {
	w := newTestbed(t, "a", "b")
	l := nettest.Listen(t, w.pods["b"], ":80")
	c := nettest.Connect(t, w.pods["a"], "tcp", w.address("b", false, 80))
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go io.Copy(io.Discard, c)
	w.apply(ingressTo("b"))
	for {
		if _, err := server.Write([]byte("word")); err != nil {
			if !isReset(err) {
				t.Error(err)
			}
			return
		}
	}
}

// What leaves: blocks of addresses, ports, running connections; the host's answers come back.
func TestOutside(t *testing.T) {
	w := newTestbed(t, "a", "b")
	w.serve("remote", 80, 81)
	w.serve("b", 80)
	lan := Peer{Block: block("10.77.0.0/24")}
	lan6 := Peer{Block: block("fd77::/64")}
	w.check(true, "a remote", "a remote UDP/80")
	c, allowed := w.dial("a", "remote", 80, false), w.dial("a", "remote", 81, true)
	w.apply(ingressTo("a"))
	alive(t, "a remote", c)
	alive(t, "a remote TCP/81", allowed)
	w.check(true, "a remote", "a remote UDP/80")
	w.apply(egressFrom("a"))
	w.check(false, "a remote", "a remote UDP/80", "a b")
	w.apply(egressFrom("a", Rule{[]Peer{lan, lan6}, []Port{tcp(81), {"UDP", "", 80, 80}}}))
	w.check(true, "a remote TCP/81", "a remote UDP/80", "b remote")
	w.check(false, "a remote TCP/80", "a remote UDP/81", "a b")
	cut(t, "a remote", c)
	alive(t, "a remote TCP/81", allowed)
	w.apply(egressFrom("a", Rule{Peers: []Peer{{Block: block("10.0.0.0/8", "10.77.0.2/32")}, {Block: block("::/0", "fd77::/16")}}}))
	w.check(false, "a remote", "a remote UDP/80")
	w.apply(egressFrom("a", Rule{Peers: []Peer{{Block: block("0.0.0.0/0", "10.78.0.0/16")}, {Block: block("::/0")}}}))
	w.check(true, "a remote", "a b UDP/80")
}

// A pod reaches the resolver and itself whatever the policies are.
func TestAlwaysAllowed(t *testing.T) {
	w := newTestbed(t, "a")
	w.serve("a", 80)
	w.apply(ingressTo("a"), egressFrom("a"))
	w.check(true, "a a", "a a UDP/80")
	// This proxy has no resolver: its port is closed, and the pod gets an ICMP error.
	err := w.tryDNS()
	if !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("a query to the gateway: %v, want that the port is closed", err)
	}
}

func (w *testbed) tryDNS() error {
	c, err := nettest.Dial(w.pods["a"], "udp", w.Pool.Gateway().V4.String()+":53")
	if err != nil {
		return err
	}
	defer c.Close()
	return nettest.RoundTrip(c, []byte("query"))
}

// Rules that are up to date stay; nothing is made without policies.
func TestUnchanged(t *testing.T) {
	w := newTestbed(t, "a", "b")
	for _, step := range []struct {
		policies []Policy
		want     bool
	}{
		{nil, false},
		{[]Policy{ingressTo("nobody")}, false},
		{[]Policy{ingressTo("a")}, true},
		{[]Policy{ingressTo("a")}, false},
		{[]Policy{ingressTo("a"), ingressTo("b")}, true},
		{[]Policy{ingressTo("a"), ingressTo("b")}, false},
		{[]Policy{ingressTo("a", Rule{})}, true},
		{nil, true},
		{nil, false},
	} {
		if got := w.apply(step.policies...); got != step.want {
			t.Errorf("%v: changed is %v, want %v", step.policies, got, step.want)
		}
	}
	if names := currentTables(t, w.RouterNS); names != "" {
		t.Errorf("the table %s stays", names)
	}
}
