package netstack

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns"
	"github.com/podrun/podrun/netns/egress"
	"github.com/podrun/podrun/netns/stackproc"
)

// The test binary is the program of the stack.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == stackproc.Stage {
		os.Exit(serve(nil))
	}
	testenv.Main(m)
}

// hostAddr is the host's; this process's network is the host's.
const hostAddr = "10.77.0.1"

// newPod makes a pod whose traffic is carried by a stack in a process of its own.
func newPod(t *testing.T, names egress.Resolver) (podNS string, own netns.Addresses, s *stackproc.Stack) {
	t.Helper()
	testenv.NoLeaks(t)
	link := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "host"}, PeerName: "other"}
	addr, err := netlink.ParseAddr(hostAddr + "/24")
	if err == nil {
		err = errors.Join(netns.LoopbackUp("/proc/thread-self/ns/net"), netlink.LinkAdd(link))
	}
	if err == nil {
		t.Cleanup(func() { netlink.LinkDel(link) })
		err = errors.Join(netlink.AddrAdd(link, addr), netlink.LinkSetUp(link))
	}
	if err != nil {
		t.Fatal(err)
	}
	podNS = testenv.Namespaces(t, unix.CLONE_NEWNET) + "/ns/net"
	path := testenv.Namespaces(t, unix.CLONE_NEWNET) + "/ns/net"
	router := netns.OpenRouter(path)
	pool, err := router.Prepare()
	if err == nil {
		err = errors.Join(netns.LoopbackUp(podNS), router.Attach(podNS, pool, 1))
	}
	if err != nil {
		t.Fatal(err)
	}
	wires, err := router.WirePackets(pool, 1)
	if err != nil {
		t.Fatal(err)
	}
	s, err = stackproc.Serve("/proc/self/exe", egress.Config{RouterNS: path, Pool: pool, Slot: 1, Names: names}, wires)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return podNS, pool.Of(1), s
}

// dial connects on a thread inside the pod.
func dial(t *testing.T, ns string, kind int, to string) net.Conn {
	t.Helper()
	var c net.Conn
	err := netns.Do(ns, func() error {
		fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), "socket")
		defer f.Close()
		if err := unix.Connect(fd, netns.SockAddr(netip.MustParseAddrPort(to))); err != nil {
			return err
		}
		c, err = net.FileConn(f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

// echoes gives back every datagram that comes.
func echoes(t *testing.T, c net.PacketConn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 1<<16)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			c.WriteTo(b[:n], from)
		}
	}()
	t.Cleanup(func() { c.Close(); <-done })
}

// returns says whether datagrams of all sizes come back.
func returns(t *testing.T, c net.Conn) {
	t.Helper()
	for _, size := range []int{0, 1, 1473, 40000, 65000} {
		want := bytes.Repeat([]byte{byte(size)}, size)
		got := make([]byte, 1<<16)
		if _, err := c.Write(want); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		} else if n, err := c.Read(got); err != nil || !bytes.Equal(got[:n], want) {
			t.Errorf("of %d bytes %d came back: %v", size, n, err)
		}
	}
}

// pauses waits until nothing is under way.
func pauses(t *testing.T, s *stackproc.Stack) {
	t.Helper()
	for begun := time.Now(); !s.Pause(); {
		if time.Since(begun) > time.Minute {
			t.Fatal("something stays under way")
		}
	}
	s.Resume()
}

// Datagrams go out and come in, whatever their size; a client's has its own address.
func TestDatagrams(t *testing.T) {
	ns, own, s := newPod(t, nil)
	out, err := net.ListenPacket("udp4", hostAddr+":5300")
	if err != nil {
		t.Fatal(err)
	}
	echoes(t, out)
	returns(t, dial(t, ns, unix.SOCK_DGRAM, hostAddr+":5300"))
	var in *net.UDPConn
	err = netns.Do(ns, func() (err error) {
		in, err = net.ListenUDP("udp4", &net.UDPAddr{IP: own.V4.AsSlice(), Port: 5301})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	client := netip.MustParseAddrPort("203.0.113.7:4242")
	c, err := s.DialUDP(client, 5301)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b := make([]byte, 100)
	c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, from, err := in.ReadFromUDPAddrPort(b); err != nil || from != client {
		t.Errorf("a datagram of %s came from %s: %v", client, from, err)
	}
	echoes(t, in)
	returns(t, c)
}

// Connections go out and come in, with what half of them says after the other's end; one
// that nobody wants any more ends.
func TestConnections(t *testing.T) {
	ns, own, s := newPod(t, nil)
	far, err := net.Listen("tcp4", hostAddr+":5302")
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	c := dial(t, ns, unix.SOCK_STREAM, hostAddr+":5302").(*net.TCPConn)
	other, err := far.Accept()
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(c, "to")
	c.CloseWrite()
	if b, err := io.ReadAll(other); err != nil || string(b) != "to" {
		t.Errorf("%q, %v", b, err)
	}
	io.WriteString(other, "fro")
	other.Close()
	if b, err := io.ReadAll(c); err != nil || string(b) != "fro" {
		t.Errorf("%q, %v", b, err)
	}
	pauses(t, s)

	var l net.Listener
	err = netns.Do(ns, func() (err error) { l, err = net.Listen("tcp4", own.V4.String()+":5303"); return err })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near := dial(t, "/proc/self/ns/net", unix.SOCK_STREAM, hostAddr+":5302").(*net.TCPConn)
	accepted, err := far.Accept()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	carried := make(chan struct{})
	go func() {
		defer close(carried)
		s.Carry(ctx, accepted.(*net.TCPConn), netip.MustParseAddrPort("203.0.113.7:4243"), 5303)
	}()
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if from := in.RemoteAddr().String(); from != "203.0.113.7:4243" {
		t.Errorf("a client's connection comes from %s", from)
	}
	io.WriteString(in, "hello")
	b := make([]byte, 5)
	if _, err := io.ReadFull(near, b); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
	if s.Pause() {
		t.Error("it pauses with a connection under way")
	}
	cancel()
	<-carried
	if _, err := near.Read(b); err == nil {
		t.Error("a connection goes on that nobody wants")
	}
	pauses(t, s)
}

// shouting answers with what was asked.
type shouting struct{}

func (shouting) Answer(query []byte) []byte { return bytes.ToUpper(query) }

func (shouting) Converse(c net.Conn) {
	b, _ := io.ReadAll(c)
	c.Write(bytes.ToUpper(b))
	c.Close()
}

// Questions for names come to the resolver of the other process.
func TestNames(t *testing.T) {
	ns, _, _ := newPod(t, shouting{})
	at := stackproc.Names.String() + ":53"
	c := dial(t, ns, unix.SOCK_DGRAM, at)
	b := make([]byte, 100)
	for _, q := range []string{"a", "bc"} {
		io.WriteString(c, q)
		if n, err := c.Read(b); err != nil || string(b[:n]) != string(bytes.ToUpper([]byte(q))) {
			t.Errorf("%q, %v", b[:n], err)
		}
	}
	c.Close()
	stream := dial(t, ns, unix.SOCK_STREAM, at).(*net.TCPConn)
	io.WriteString(stream, "long")
	stream.CloseWrite()
	if got, err := io.ReadAll(stream); err != nil || string(got) != "LONG" {
		t.Errorf("%q, %v", got, err)
	}
}
