package relay

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// connected returns both ends of a TCP connection.
func connected(t *testing.T) (near, far *net.TCPConn) {
	t.Helper()
	near, far = pair(t)
	for _, conn := range []net.Conn{near, far} {
		conn.SetDeadline(time.Now().Add(time.Minute))
	}
	return near, far
}

// taken returns a client and a connected descriptor as a loop has it.
func taken(t *testing.T) (client *net.TCPConn, near int) {
	t.Helper()
	client, a := connected(t)
	near, err := TakeFD(a)
	if err != nil {
		t.Fatal(err)
	}
	return client, near
}

func pair(t testing.TB) (near, far *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); s.Close() })
	return c.(*net.TCPConn), s.(*net.TCPConn)
}

// joined returns a client and a server that a relay joins; over is closed when the relay has
// returned.
func joined(t *testing.T) (client, server *net.TCPConn, over chan struct{}) {
	t.Helper()
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	client, a := connected(t)
	b, server := connected(t)
	l := newLoop(t)
	var fds [2]int
	for i, c := range []*net.TCPConn{a, b} {
		fd, err := TakeFD(c)
		if err != nil {
			t.Fatal(err)
		}
		fds[i] = fd
	}
	over = make(chan struct{})
	l.Post(func() { l.Proxy(fds[0], fds[1], 0, func() { close(over) }) })
	return client, server, over
}

func newLoop(t testing.TB) *Loop {
	t.Helper()
	l, err := NewLoop()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func await(t *testing.T, over chan struct{}) {
	t.Helper()
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Fatal("the relay goes on")
	}
}

// The output equals the input whatever the sizes of the writes, and the other direction stays open
// when one has ended.
func TestEveryByteAndHalfClose(t *testing.T) {
	client, server, over := joined(t)
	sum := sha256.New()
	go func() {
		r := rand.New(rand.NewSource(1))
		b := make([]byte, 3<<20)
		for range 60 {
			n := r.Intn(len(b)) >> r.Intn(20)
			r.Read(b[:n])
			sum.Write(b[:n])
			if _, err := client.Write(b[:n]); err != nil {
				t.Error(err)
			}
		}
		client.CloseWrite()
	}()
	got := sha256.New()
	if _, err := io.Copy(got, server); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Sum(nil), sum.Sum(nil)) {
		t.Error("what came is not what was sent")
	}
	if _, err := server.Write([]byte("answer")); err != nil {
		t.Fatal(err)
	}
	server.Close()
	if b, err := io.ReadAll(client); err != nil || string(b) != "answer" {
		t.Errorf("after the half-close: %q: %v", b, err)
	}
	await(t, over)
}

// A reset arrives as a reset, at once, also where the other direction is idle.
func TestResets(t *testing.T) {
	for name, before := range map[string]func(client, server *net.TCPConn) error{
		"at rest":            func(_, _ *net.TCPConn) error { return nil },
		"after a half-close": func(client, _ *net.TCPConn) error { return client.CloseWrite() },
		"after data": func(client, server *net.TCPConn) error {
			_, err := client.Write([]byte("x"))
			return errors.Join(err, readOne(server))
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, server, over := joined(t)
			if err := before(client, server); err != nil {
				t.Fatal(err)
			}
			Reset(client)
			await(t, over)
			if _, err := io.Copy(io.Discard, server); name != "after a half-close" && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the server sees %v", err)
			}
			if _, err := server.Write([]byte("x")); err == nil {
				t.Error("the server may still write")
			}
		})
	}
}

func readOne(c net.Conn) error {
	_, err := io.ReadFull(c, make([]byte, 1))
	return err
}

// Without descriptors for a pipe, all bytes arrive all the same.
func TestWithoutPipes(t *testing.T) {
	client, server, over := joined(t)
	const size = 10 << 20
	testenv.WithDescriptors(t, 3, func() {
		go func() {
			client.Write(make([]byte, size))
			client.Close()
		}()
		if n, err := io.Copy(io.Discard, server); err != nil || n != size {
			t.Errorf("%d bytes: %v", n, err)
		}
	})
	server.Close()
	await(t, over)
}
