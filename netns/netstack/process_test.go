package netstack

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns/egress"
	"github.com/podrun/podrun/netns/ipam"
	"github.com/podrun/podrun/netns/netstack/stackclient"
	"github.com/podrun/podrun/netns/netstack/stackproto"
)

// The test binary is also the program of the stack.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == protocol.EntryNetstack {
		os.Exit(serve(nil))
	}
	testenv.Main(m)
}

// newPod makes a pod whose traffic a stack in a process of its own handles.
func newPod(t *testing.T, names egress.Resolver) (podNS string, addresses ipam.Addresses, s *stackclient.Client) {
	t.Helper()
	w := nettest.NewTestbed(t, nettest.HostNetNS)
	podNS = w.NewPod(t, 1)
	traffic, err := w.Router.OpenPackets(w.Pool, 1)
	if err != nil {
		t.Fatal(err)
	}
	s, err = stackclient.Start("/proc/self/exe", egress.Config{RouterNS: w.RouterNS, Pool: w.Pool, Slot: 1, Names: names}, traffic)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return podNS, w.Pool.Addresses(1), s
}

// returns reports whether datagrams of all sizes are echoed.
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

// Datagrams of all sizes pass in both directions; a client's datagrams have its own address.
func TestDatagrams(t *testing.T) {
	ns, addresses, s := newPod(t, nil)
	nettest.ServePacket(t, nettest.HostNetNS, nettest.HostAddr+":5300", nettest.EchoPacket)
	returns(t, nettest.Connect(t, ns, "udp", nettest.HostAddr+":5300"))
	client := netip.MustParseAddrPort("203.0.113.7:4242")
	nettest.ServePacket(t, ns, addresses.V4.String()+":5301", func(from net.Addr, text []byte) []byte {
		if from.String() != client.String() {
			t.Errorf("a datagram of %s came from %s", client, from)
		}
		return text
	})
	c, err := s.DialUDP(client, 5301)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(nettest.Timeout))
	returns(t, c)
}

// Connections pass in both directions and deliver what one end sends after the other's half-close.
// A connection ends when its client's context does.
func TestConnections(t *testing.T) {
	ns, addresses, s := newPod(t, nil)
	far := nettest.Listen(t, nettest.HostNetNS, nettest.HostAddr+":5302")
	c := nettest.Connect(t, ns, "tcp", nettest.HostAddr+":5302").(*net.TCPConn)
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
	nettest.WaitIdle(t, s)

	l := nettest.Listen(t, ns, addresses.V4.String()+":5303")
	near := nettest.Connect(t, nettest.HostNetNS, "tcp", nettest.HostAddr+":5302").(*net.TCPConn)
	accepted, err := far.Accept()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	carried := make(chan struct{})
	go func() {
		defer close(carried)
		s.Forward(ctx, accepted.(*net.TCPConn), netip.MustParseAddrPort("203.0.113.7:4243"), 5303)
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
	nettest.WaitIdle(t, s)
}

// shouting is a resolver that echoes the question.
type shouting struct{}

func (shouting) Answer(query []byte) []byte { return bytes.ToUpper(query) }

func (shouting) ServeConn(c net.Conn) {
	b, _ := io.ReadAll(c)
	c.Write(bytes.ToUpper(b))
	c.Close()
}

// DNS queries reach the resolver of the other process.
func TestNames(t *testing.T) {
	ns, _, _ := newPod(t, shouting{})
	address := stackproto.ResolverAddr.String() + ":53"
	c := nettest.Connect(t, ns, "udp", address)
	b := make([]byte, 100)
	for _, q := range []string{"a", "bc"} {
		io.WriteString(c, q)
		if n, err := c.Read(b); err != nil || string(b[:n]) != string(bytes.ToUpper([]byte(q))) {
			t.Errorf("%q, %v", b[:n], err)
		}
	}
	c.Close()
	stream := nettest.Connect(t, ns, "tcp", address).(*net.TCPConn)
	io.WriteString(stream, "long")
	stream.CloseWrite()
	if got, err := io.ReadAll(stream); err != nil || string(got) != "LONG" {
		t.Errorf("%q, %v", got, err)
	}
}
