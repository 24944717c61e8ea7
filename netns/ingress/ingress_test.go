package ingress

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns/hostport"
	"github.com/podrun/podrun/netns/router"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// world is the testbed with a pod; the router accepts everything that the pod sends to destinations
// other than pods.
type world struct {
	*nettest.Testbed
	pod string
}

// Addresses of the pod, and of its gateway.
const (
	podAddr, podAddr6         = "10.88.0.2", "fd88::2"
	gatewayAddr, gatewayAddr6 = "10.88.0.1", "fd88::1"
)

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{Testbed: nettest.NewTestbed(t, "")}
	w.pod, _ = w.NewPodWithTraffic(t, 1)
	return w
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// dialer returns a UDPDialer that reaches the pod from the router, with clients' addresses; or, plain,
// from the pod's own network.
func (w *world) dialer(t testing.TB, plain bool) UDPDialer {
	t.Helper()
	d := &NetnsDialer{Addrs: router.UsableAddresses(w.Pool, 1), Transparent: !plain, PodPrefixes: []netip.Prefix{w.Pool.V4, w.Pool.V6}}
	ns := w.RouterNS
	if plain {
		ns = w.pod
	}
	must(t, d.Start(ns))
	t.Cleanup(d.Close)
	return d
}

// publish serves a port of the host that leads to another port of the pod.
func (w *world) publish(t testing.TB, d UDPDialer, p hostport.Port, to int) *Server {
	t.Helper()
	var file *os.File
	nettest.Do(t, w.Host, func() (err error) { file, err = listening(p); return err })
	s := New(d)
	err := s.Add(file, p.Protocol, to)
	file.Close()
	must(t, err)
	t.Cleanup(s.Close)
	return s
}

func listening(p hostport.Port) (*os.File, error) {
	file, err := hostport.Bind(p)
	if err == nil {
		err = hostport.Listen(file, p)
	}
	return file, err
}

// whoServer starts a server in a pod at port 80 that answers with the client's address and finally
// its own name.
func whoServer(t testing.TB, pod, name string) {
	t.Helper()
	nettest.Serve(t, pod, ":80", func(c *net.TCPConn) { fmt.Fprint(c, c.RemoteAddr(), name) })
	nettest.ServePacket(t, pod, ":80", func(from net.Addr, text []byte) []byte {
		return fmt.Appendf(nil, "%v %d%s", from, len(text), name)
	})
}
