package nettest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/rawsys"
)

// Timeout bounds the wait for an expected event.
const Timeout = time.Minute

// Do is netns.Do that must succeed.
func Do(t testing.TB, ns string, f func() error) {
	t.Helper()
	if err := nsthread.Do(f, ns); err != nil {
		t.Fatal(err)
	}
}

// Dial connects from inside a network by "tcp" or "udp" to an address with a port. Timeout bounds
// the connecting and the traffic on it. The error is the system call's.
func Dial(ns, network, to string) (net.Conn, error) {
	return DialFrom(ns, network, "", to, Timeout)
}

// DialFrom is Dial from an address, or from any if it is empty, with another timeout; the traffic
// has at least a second.
func DialFrom(ns, network, from, to string, within time.Duration) (c net.Conn, err error) {
	err = nsthread.Do(func() error {
		c, err = dialHere(network, from, to, within)
		return err
	}, ns)
	return c, err
}

// DialHere is Dial from the calling thread's network.
func DialHere(network, to string) (net.Conn, error) { return dialHere(network, "", to, Timeout) }

// dialHere replaces net.Dial, which may use other threads and interprets some addresses itself.
func dialHere(network, from, to string, within time.Duration) (net.Conn, error) {
	address := netip.MustParseAddrPort(to)
	family, kind := unix.AF_INET, unix.SOCK_STREAM
	if address.Addr().Is6() {
		family = unix.AF_INET6
	}
	if network == "udp" {
		kind = unix.SOCK_DGRAM
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	patience := unix.NsecToTimeval(within.Nanoseconds())
	err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &patience)
	if err == nil && from != "" {
		err = unix.Bind(fd, rawsys.Sockaddr(netip.AddrPortFrom(netip.MustParseAddr(from), 0)))
	}
	if err == nil {
		err = unix.Connect(fd, rawsys.Sockaddr(address))
	}
	if err != nil {
		return nil, err
	}
	c, err := net.FileConn(f)
	if err == nil {
		c.SetDeadline(time.Now().Add(max(within, time.Second)))
	}
	return c, err
}

// Connect is Dial that must succeed.
func Connect(t testing.TB, ns, network, to string) net.Conn {
	t.Helper()
	c, err := Dial(ns, network, to)
	if err != nil {
		t.Fatalf("connect to %s by %s: %v", to, network, err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Listen listens inside a network for TCP connections.
func Listen(t testing.TB, ns, address string) net.Listener {
	t.Helper()
	var l net.Listener
	Do(t, ns, func() (err error) { l, err = net.Listen("tcp", address); return err })
	t.Cleanup(func() { l.Close() })
	return l
}

// ListenPacket listens inside a network for datagrams.
func ListenPacket(t testing.TB, ns, address string) *net.UDPConn {
	t.Helper()
	var c net.PacketConn
	Do(t, ns, func() (err error) { c, err = net.ListenPacket("udp", address); return err })
	t.Cleanup(func() { c.Close() })
	return c.(*net.UDPConn)
}

// Serve listens inside a network, passes every connection to f, and closes it afterwards, until the
// test has ended.
func Serve(t testing.TB, ns, address string, f func(*net.TCPConn)) net.Listener {
	t.Helper()
	l := Listen(t, ns, address)
	var open sync.Map
	var answering sync.WaitGroup
	accepting := make(chan struct{})
	go func() {
		defer close(accepting)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open.Store(c, nil)
			answering.Go(func() {
				defer open.Delete(c)
				defer c.Close()
				f(c.(*net.TCPConn))
			})
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-accepting
		open.Range(func(c, _ any) bool { c.(net.Conn).Close(); return true })
		answering.Wait()
	})
	return l
}

// ServePacket listens inside a network and answers every datagram with the result of f, until the
// test has ended.
func ServePacket(t testing.TB, ns, address string, f func(from net.Addr, text []byte) []byte) {
	t.Helper()
	c := ListenPacket(t, ns, address)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 1<<16)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			c.WriteTo(f(from, b[:n]), from)
		}
	}()
	t.Cleanup(func() { c.Close(); <-done })
}

// Echo is a handler for Serve that returns what it receives. It copies by hand: Go's splicing would
// keep a pipe for the next connection.
func Echo(c *net.TCPConn) { io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c}) }

// EchoPacket is a handler for ServePacket that returns what it receives.
func EchoPacket(_ net.Addr, text []byte) []byte { return text }

// RoundTrip sends a text and expects it back.
func RoundTrip(c net.Conn, text []byte) error {
	sent := make(chan error, 1)
	go func() { _, err := c.Write(text); sent <- err }()
	got := make([]byte, len(text))
	if _, err := io.ReadFull(c, got); err != nil {
		c.SetWriteDeadline(time.Now()) // unblocks the writer
		return fmt.Errorf("of %d bytes: %w", len(text), errors.Join(err, <-sent))
	}
	if !bytes.Equal(got, text) {
		return errors.New("something else came back")
	}
	return nil
}

// Await polls until a condition is true.
func Await(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Timeout); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is waited in vain until " + what)
		}
	}
}

// WaitIdle waits until something can be paused, with no operation in flight, and resumes it.
func WaitIdle(t testing.TB, of interface {
	Pause() bool
	Resume()
}) {
	t.Helper()
	Await(t, "nothing is under way", of.Pause)
	of.Resume()
}
