package relay

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/brief"
	"github.com/podrun/podrun/internal/testenv"
)

// carried is a client and a server that a loop joins.
func carried(t *testing.T, l *Loop) (client, server *net.TCPConn) {
	t.Helper()
	client, a := connected(t)
	b, server := connected(t)
	fda, err := Take(a)
	fdb, berr := Take(b)
	if err = errors.Join(err, berr); err != nil {
		t.Fatal(err)
	}
	l.Post(func() { l.Carry(fda, fdb, 0, func() {}) })
	return client, server
}

// Who does not read holds up nobody but who writes to it: streams go both ways at once, and
// other connections have their turn.
func TestBothWaysAtOnce(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	l := newLoop(t)
	const size = 24 << 20
	var all sync.WaitGroup
	stuck, _ := carried(t, l)
	all.Go(func() { stuck.Write(make([]byte, size)) }) // that nobody reads
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

// The end of a loop is a reset for all, and a loop that has ended takes nothing.
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
	l.Join(a, b)
	if err := readOne(client); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after the end: %v, want a reset", err)
	}
}

// What is urgent ends a read before all is read: the rest comes all the same.
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

// So does what ends a stream's splicing, and no other event tells of the rest.
func TestUrgentDataInAStream(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	l := newLoop(t)
	client, server := carried(t, l)
	raw, err := client.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	goOn := make(chan struct{})
	l.Post(func() { <-goOn })
	client.Write(make([]byte, 2*small))
	cerr := raw.Control(func(fd uintptr) { err = unix.Sendto(int(fd), []byte("!"), unix.MSG_OOB, nil) })
	if err = errors.Join(err, cerr); err != nil {
		t.Fatal(err)
	}
	client.Write([]byte("rest"))
	close(goOn)
	got := make([]byte, 2*small+4)
	if n, err := io.ReadFull(server, got); err != nil || string(got[2*small:]) != "rest" {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// A connection that is refused resets the one that waited for it; one that is not answered
// does so in time, and one that is given up at once.
func TestMeet(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	l := newLoop(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	refusing := &unix.SockaddrInet4{Port: closed.Addr().(*net.TCPAddr).Port, Addr: [4]byte{127, 0, 0, 1}}
	silent := silentAddr(t)
	for name, c := range map[string]struct {
		to       unix.Sockaddr
		patience time.Duration
		giveUp   bool
	}{
		"refused":    {refusing, time.Hour, false},
		"unanswered": {silent, time.Millisecond, false},
		"given up":   {silent, time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			client, a := connected(t)
			near, err := Take(a)
			if err != nil {
				t.Fatal(err)
			}
			far, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := unix.Connect(far, c.to); err != unix.EINPROGRESS && err != unix.ECONNREFUSED {
				t.Fatal(err)
			}
			over := make(chan struct{})
			l.Post(func() {
				end := l.Meet(near, far, c.patience, func() { close(over) })
				if c.giveUp {
					end()
				}
			})
			await(t, over)
			if err := readOne(client); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the client sees %v, want a reset", err)
			}
		})
	}
}

// What has been said before both are connected arrives, as does an end that followed it.
func TestMeetWhoHasSpoken(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	l := newLoop(t)
	for name, early := range map[string]func(c *net.TCPConn) string{
		"nothing":          func(c *net.TCPConn) string { return "" },
		"a word":           func(c *net.TCPConn) string { c.Write([]byte("word")); return "word" },
		"a word, its last": func(c *net.TCPConn) string { c.Write([]byte("word")); c.CloseWrite(); return "word" },
		"its last":         func(c *net.TCPConn) string { c.CloseWrite(); return "" },
		"much": func(c *net.TCPConn) string {
			text := strings.Repeat("much", small)
			go func() { c.Write([]byte(text)); c.CloseWrite() }()
			return text
		},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			client, a := connected(t)
			near, err := Take(a)
			if err != nil {
				t.Fatal(err)
			}
			said := early(client)
			over := make(chan struct{})
			l.Post(func() {
				far, err := brief.Socket(unix.AF_INET, unix.SOCK_STREAM)
				if err == nil {
					if err = brief.Connect(far, listener.Addr().(*net.TCPAddr).AddrPort(), 0); err == unix.EINPROGRESS {
						err = nil
					}
				}
				if err != nil {
					t.Error(err)
				}
				l.Meet(near, far, time.Minute, func() { close(over) })
			})
			server, err := listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			server.Write([]byte("x"))
			if err := readOne(client); err != nil {
				t.Errorf("the client hears nothing: %v", err)
			}
			client.CloseWrite()
			if b, err := io.ReadAll(server); err != nil || string(b) != said {
				t.Errorf("the server hears %d bytes of %d: %v", len(b), len(said), err)
			}
			server.Close()
			await(t, over)
		})
	}
	err := l.Do(func() error {
		if len(l.meeting) > 0 || len(l.ticks) > 1 {
			t.Errorf("%d are waited for, by %d ticks", len(l.meeting), len(l.ticks))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// silentAddr is an address at which nobody answers: a listener's whose backlog is full.
func silentAddr(t *testing.T) unix.Sockaddr {
	t.Helper()
	socket := func() int {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	listener := socket()
	err := unix.Bind(listener, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		err = unix.Listen(listener, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	at, err := unix.Getsockname(listener)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		unix.Connect(socket(), at)
	}
	return at
}
