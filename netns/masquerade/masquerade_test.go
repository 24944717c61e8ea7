package masquerade

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/netns/egress"
	"github.com/podrun/podrun/netns/router"
)

// What a pod sends leaves with the host's address and passes no supervisor: a supervisor's crash or
// absence changes nothing.
func TestThrough(t *testing.T) {
	w := newTestbed(t)
	server, clients := echoServer(t, w.Remote, nettest.RemoteAddr+":0")
	p := w.pod(1)
	c := nettest.Connect(t, p.ns, "tcp", server)
	if err := nettest.RoundTrip(c, text(1<<20)); err != nil {
		t.Error(err)
	}
	if client := <-clients; client.String() != nettest.HostAddr {
		t.Errorf("the client is %s", client)
	}
	if !p.idle() {
		t.Error("it goes by the supervisor")
	}
	p.egress.Close()
	if err := nettest.RoundTrip(c, text(1<<20)); err != nil {
		t.Errorf("without a supervisor: %v", err)
	}
	if err := ping(p.ns, nettest.RemoteAddr); err != nil {
		t.Errorf("ping: %v", err)
	}
	if err := ping(p.ns, nettest.HostAddr); err != nil {
		t.Errorf("ping of the host: %v", err)
	}
}

// Datagrams of any size arrive, including the first one.
func TestDatagrams(t *testing.T) {
	w := newTestbed(t)
	p := w.pod(1)
	server := nettest.ListenPacket(t, w.Remote, nettest.RemoteAddr+":0")
	c := nettest.Connect(t, p.ns, "udp", server.LocalAddr().String())
	server.SetDeadline(time.Now().Add(time.Minute))
	buf := make([]byte, 1<<16)
	for _, size := range []int{60000, 1, 1472, 1473, 4000, 65507} {
		text := bytes.Repeat([]byte{byte(size)}, size)
		if _, err := c.Write(text); err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		n, from, err := server.ReadFrom(buf)
		if err != nil || !bytes.Equal(buf[:n], text) {
			t.Fatalf("of %d bytes %d came from %v: %v", size, n, from, err)
		}
		if _, err := server.WriteTo(text, from); err != nil {
			t.Fatal(err)
		}
		if n, err = c.Read(buf); err != nil || !bytes.Equal(buf[:n], text) {
			t.Fatalf("of %d bytes %d came back: %v", size, n, err)
		}
	}
	if !p.idle() {
		t.Error("they go by the supervisor")
	}
}

// A server that answers a pod too late gets an ICMP error from the pod's kernel.
func TestErrorsLeave(t *testing.T) {
	w := newTestbed(t)
	p := w.pod(1)
	server := nettest.ListenPacket(t, w.Remote, nettest.RemoteAddr+":0")
	server.SetDeadline(time.Now().Add(time.Minute))
	raw, err := server.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	cerr := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_RECVERR, 1) })
	if err = errors.Join(cerr, err); err != nil {
		t.Fatal(err)
	}
	c := nettest.Connect(t, p.ns, "udp", server.LocalAddr().String())
	if _, err := c.Write([]byte("?")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	_, client, err := server.ReadFrom(b)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if _, err := server.WriteTo(b, client); err != nil {
		t.Fatal(err)
	}
	if _, _, err := server.ReadFrom(b); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("the server hears %v", err)
	}
}

// A pod gets the errors that it would get on the host's network.
func TestRefusals(t *testing.T) {
	w := newTestbed(t)
	p := w.pod(1)
	for to, want := range map[string][]error{
		nettest.RemoteAddr + ":9": {unix.ECONNREFUSED},
		nettest.HostAddr + ":9":   {unix.ECONNREFUSED},
		"10.99.0.1:9":             {unix.ENETUNREACH, unix.EHOSTUNREACH}, // the host has no route
		"10.77.0.3:9":             {unix.EHOSTUNREACH},                   // no host has the address
		"127.0.0.1:9":             {unix.ECONNREFUSED},                   // the pod's own
		"169.254.1.2:9":           {unix.ENETUNREACH},
		"0.1.2.3:9":               {unix.ENETUNREACH},
		"169.254.88.2:9":          nil,
		"224.0.0.1:9":             {unix.ENETUNREACH},
		"255.255.255.255:9":       {unix.ENETUNREACH, unix.EACCES},
	} {
		c, err := nettest.DialFrom(p.ns, "tcp", "", to, 20*time.Second)
		if err == nil {
			c.Close()
			t.Errorf("%s: connected", to)
			continue
		}
		ok := want == nil
		for _, e := range want {
			ok = ok || errors.Is(err, e)
		}
		if !ok {
			t.Errorf("%s: %v", to, err)
		}
	}
}

// No loopback is reachable, whatever the pod tries. The host's other addresses are reachable, as
// through a supervisor.
func TestLoopback(t *testing.T) {
	w := newTestbed(t)
	here := nettest.HostNetNS
	hidden, _ := echoServer(t, here, "127.0.0.1:0")
	open, _ := echoServer(t, here, "0.0.0.0:0")
	_, port, _ := net.SplitHostPort(hidden)
	_, openPort, _ := net.SplitHostPort(open)
	p := w.pod(1)
	// Remove the pod's own loopback, as a pod with NET_ADMIN could.
	nettest.Do(t, p.ns, func() error {
		return errors.Join(leadLoopbackOut(w.Pool.Gateway().V4), os.WriteFile("/proc/sys/net/ipv4/conf/eth0/route_localnet", []byte("1"), 0))
	})
	for _, to := range []string{"127.0.0.1:" + port, "169.254.1.2:" + port, "127.0.0.1:" + openPort} {
		c, err := nettest.DialFrom(p.ns, "tcp", w.Pool.Addresses(1).V4.String(), to, 2*time.Second)
		if err == nil {
			c.Close()
			t.Errorf("%s: connected", to)
		}
	}
	c := nettest.Connect(t, p.ns, "tcp", nettest.HostAddr+":"+openPort)
	if err := nettest.RoundTrip(c, text(1<<10)); err != nil {
		t.Error(err)
	}
	c.Close()
	// A pod with permission reaches the loopback through the supervisor.
	q := w.pod(2, func(c *egress.Config) { c.HostLoopback = true })
	c = nettest.Connect(t, q.ns, "tcp", "169.254.1.2:"+port)
	if err := nettest.RoundTrip(c, text(1<<10)); err != nil {
		t.Error(err)
	}
}

// A pod cannot use foreign source addresses, and nothing can connect to it through the masquerade device.
func TestSpoofing(t *testing.T) {
	w := newTestbed(t)
	server, clients := echoServer(t, w.Remote, nettest.RemoteAddr+":0")
	p, q := w.pod(1), w.pod(2)
	inside, _ := echoServer(t, q.ns, w.Pool.Addresses(2).V4.String()+":0")
	others := []string{"10.99.0.9", w.Pool.Addresses(3).V4.String(), "169.254.88.2", nettest.HostAddr}
	for _, other := range others {
		nettest.Do(t, p.ns, func() error { return nettest.AddAddresses("eth0", other+"/32") })
	}
	for _, from := range others {
		if c, err := nettest.DialFrom(p.ns, "tcp", from, server, time.Second); err == nil {
			c.Close()
			t.Errorf("connected from %s", from)
		}
	}
	err := nsthread.Do(func() error {
		return errors.Join(routeBy("169.254.88.0/30", nettest.HostAddr), routeBy(w.Pool.V4.String(), nettest.HostAddr))
	}, w.Remote)
	if err == nil {
		err = routeBy(w.Pool.V4.String(), "169.254.88.2") // the host itself has no such route
	}
	if err != nil {
		t.Fatal(err)
	}
	for ns, targets := range map[string][]string{
		w.Remote:          {"169.254.88.2:12001", "169.254.88.1:12001", inside},
		nettest.HostNetNS: {"169.254.88.2:12001", inside},
	} {
		for _, to := range targets {
			if c, err := nettest.DialFrom(ns, "tcp", "", to, time.Second); err == nil {
				c.Close()
				t.Errorf("%s: connected from outside", to)
			}
		}
	}
	select {
	case who := <-clients:
		t.Errorf("connected: %s", who)
	default:
	}
	c := nettest.Connect(t, p.ns, "tcp", inside) // pods reach each other
	if err := nettest.RoundTrip(c, text(1<<10)); err != nil {
		t.Error(err)
	}
}

// A pod that used the other egress mode changes it in the same slot.
func TestOtherRoute(t *testing.T) {
	w := newTestbed(t)
	server, clients := echoServer(t, w.Remote, nettest.RemoteAddr+":0")
	p := w.pod(1)
	for round, leaves := range []bool{true, false, true} {
		p.egress.Close()
		q := w.attach(1)
		var traffic router.TrafficFDs
		var err error
		if leaves {
			traffic, err = w.Router.OpenMasqueraded(q.ns, w.Pool, 1, 1500)
		} else {
			traffic, err = w.Router.OpenTraffic(w.Pool, 1)
		}
		if err != nil {
			t.Fatal(err)
		}
		q.serve(traffic)
		c, err := nettest.Dial(q.ns, "tcp", server)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if err := nettest.RoundTrip(c, text(1<<16)); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		if q.idle() != leaves {
			t.Errorf("round %d: by the supervisor: %v", round, leaves)
		}
		if client := <-clients; client != netip.MustParseAddr(nettest.HostAddr) {
			t.Errorf("the client is %s", client)
		}
		c.Close()
		p = q
	}
}

// Masqueraded connections use the host's congestion control.
func TestControl(t *testing.T) {
	w := newTestbed(t)
	const file = "/proc/sys/net/ipv4/tcp_congestion_control"
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := w.pod(1)
	var got []byte
	if err := nsthread.Do(func() (err error) { got, err = os.ReadFile(file); return err }, p.ns); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%q, want %q: %v", got, want, err)
	}
}
