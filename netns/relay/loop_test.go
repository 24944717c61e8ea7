package relay

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

// carried returns a client and a server that a loop joins.
func carried(t *testing.T, l *Loop) (client, server *net.TCPConn) {
	t.Helper()
	client, a := connected(t)
	b, server := connected(t)
	fda, err := TakeFD(a)
	fdb, berr := TakeFD(b)
	if err = errors.Join(err, berr); err != nil {
		t.Fatal(err)
	}
	l.Post(func() { l.Proxy(fda, fdb, 0, func() {}) })
	return client, server
}

// A slow reader blocks only its own sender: streams pass in both directions at once, and other
// connections get their turn.
func TestBothWaysAtOnce(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	l := newLoop(t)
	const size = 24 << 20
	var all sync.WaitGroup
	stuck, _ := carried(t, l)
	all.Go(func() { stuck.Write(make([]byte, size)) }) // its peer never reads
	client, server := carried(t, l)
	for _, c := range []*net.TCPConn{client, server} {
		all.Go(func() {
			c.Write(make([]byte, size))
			c.CloseWrite()
		})
		all.Go(func() {
			if n, err := io.Copy(io.Discard, struct{ io.Reader }{c}); err != nil || n != size {
				t.Errorf("%d bytes: %v", n, err)
			}
		})
	}
	one, other := carried(t, l)
	for range 100 {
		one.Write([]byte("x"))
		if err := readOne(other); err != nil {
			t.Fatal(err)
		}
	}
	stuck.SetDeadline(time.Now().Add(time.Second))
	all.Wait()
}

// The end of a loop resets all connections, and a closed loop accepts nothing.
func TestTheEndOfALoop(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	l := newLoop(t)
	client, server := carried(t, l)
	client.Write([]byte("x"))
	if err := readOne(server); err != nil {
		t.Fatal(err)
	}
	l.Close()
	for _, c := range []*net.TCPConn{client, server} {
		if err := readOne(c); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%v, want a reset", err)
		}
	}
	if l.Post(func() {}) || l.Do(func() error { return nil }) == nil {
		t.Error("something is taken after the end")
	}
	client, a := connected(t)
	b, _ := connected(t)
	l.ProxyConns(a, b)
	if err := readOne(client); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after the end: %v, want a reset", err)
	}
}

// Urgent data ends a read before all is read: the rest arrives all the same.
func TestUrgentData(t *testing.T) {
	client, server, over := joined(t)
	raw, err := client.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	client.Write([]byte("ab"))
	cerr := raw.Control(func(fd uintptr) { err = unix.Sendto(int(fd), []byte("!"), unix.MSG_OOB, nil) })
	if err = errors.Join(err, cerr); err != nil {
		t.Fatal(err)
	}
	client.Write([]byte("cd"))
	got := make([]byte, 4)
	if _, err := io.ReadFull(server, got); err != nil || string(got) != "abcd" {
		t.Errorf("%q, %v", got, err)
	}
	client.Close()
	server.Close()
	await(t, over)
}

// Urgent data also ends the splicing of a stream, and no other event reports the rest.
func TestUrgentDataInAStream(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	l := newLoop(t)
	client, server := carried(t, l)
	raw, err := client.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	resume := make(chan struct{})
	l.Post(func() { <-resume })
	client.Write(make([]byte, 2*copySize))
	cerr := raw.Control(func(fd uintptr) { err = unix.Sendto(int(fd), []byte("!"), unix.MSG_OOB, nil) })
	if err = errors.Join(err, cerr); err != nil {
		t.Fatal(err)
	}
	client.Write([]byte("rest"))
	close(resume)
	got := make([]byte, 2*copySize+4)
	if n, err := io.ReadFull(server, got); err != nil || string(got[2*copySize:]) != "rest" {
		t.Errorf("%d bytes, %v", n, err)
	}
}
