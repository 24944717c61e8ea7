package relay

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/internal/testenv"
)

// If the far side refuses, the waiting connection is reset; without an answer it is reset after the
// timeout, and if the client gives up, at once.
func TestProxyPending(t *testing.T) {
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
			client, near := taken(t)
			far, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := unix.Connect(far, c.to); err != unix.EINPROGRESS && err != unix.ECONNREFUSED {
				t.Fatal(err)
			}
			over := make(chan struct{})
			l.Post(func() {
				end := l.ProxyPending(near, far, c.patience, func() { close(over) })
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

// Data sent before both sides are connected arrives, and so does a half-close after it.
func TestProxyPendingWithData(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	l := newLoop(t)
	for name, early := range map[string]func(c *net.TCPConn) string{
		"nothing":          func(c *net.TCPConn) string { return "" },
		"a word":           func(c *net.TCPConn) string { c.Write([]byte("word")); return "word" },
		"a word, its last": func(c *net.TCPConn) string { c.Write([]byte("word")); c.CloseWrite(); return "word" },
		"its last":         func(c *net.TCPConn) string { c.CloseWrite(); return "" },
		"much": func(c *net.TCPConn) string {
			text := strings.Repeat("much", copySize)
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
			client, near := taken(t)
			output := early(client)
			over := make(chan struct{})
			l.Post(func() {
				far, err := rawsys.Socket(unix.AF_INET, unix.SOCK_STREAM)
				if err == nil {
					if err = rawsys.Connect(far, listener.Addr().(*net.TCPAddr).AddrPort(), 0); err == unix.EINPROGRESS {
						err = nil
					}
				}
				if err != nil {
					t.Error(err)
				}
				l.ProxyPending(near, far, time.Minute, func() { close(over) })
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
			if b, err := io.ReadAll(server); err != nil || string(b) != output {
				t.Errorf("the server hears %d bytes of %d: %v", len(b), len(output), err)
			}
			server.Close()
			await(t, over)
		})
	}
	err := l.Do(func() error {
		if len(l.connecting) > 0 || len(l.tickers) > 1 {
			t.Errorf("%d are waited for, by %d ticks", len(l.connecting), len(l.tickers))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A client that has sent more than the other side accepts at once is connected nevertheless.
func TestProxyPendingWithMuchData(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	l := newLoop(t)
	little := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		cerr := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, copySize/4) })
		return errors.Join(err, cerr)
	}}
	listener, err := little.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, near := taken(t)
	output := strings.Repeat("much", copySize)
	if _, err := client.Write([]byte(output)); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	err = l.Do(func() error {
		far, err := rawsys.Socket(unix.AF_INET, unix.SOCK_STREAM)
		if err != nil {
			return err
		}
		if err := unix.SetsockoptInt(far, unix.SOL_SOCKET, unix.SO_SNDBUF, copySize/4); err != nil {
			return err
		}
		if err := rawsys.Connect(far, listener.Addr().(*net.TCPAddr).AddrPort(), 0); err != unix.EINPROGRESS {
			return err
		}
		l.ProxyPending(near, far, time.Minute, func() { close(over) })
		if len(l.connecting) > 0 {
			t.Error("it counts as not connected, and would be given up")
		}
		for j := range l.conns {
			if j.pumps[0].dst.writable {
				t.Error("the other side took all of it")
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	received := make([]byte, len(output))
	if _, err := io.ReadFull(server, received); err != nil || string(received) != output {
		t.Errorf("the server hears something else: %v", err)
	}
	server.Close()
	client.Close()
	await(t, over)
}

// silentAddr returns an address that never answers: a listener's whose backlog is full.
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
	address, err := unix.Getsockname(listener)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		unix.Connect(socket(), address)
	}
	return address
}
