package ingress

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
	"github.com/podrun/podrun/netns/hostport"
)

// echoServer is a server in the pod that says again what it hears.
func (w *world) echoServer(t *testing.T, addr string) {
	t.Helper()
	var l net.Listener
	must(t, in(w.pod, func() (err error) { l, err = net.Listen("tcp", addr); return err }))
	var all sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				io.Copy(c, c)
				c.Close()
			})
		}
	})
}

// said is a byte there and back.
func said(c net.Conn) error {
	c.SetDeadline(time.Now().Add(time.Minute))
	_, err := c.Write([]byte("x"))
	if err == nil {
		_, err = io.ReadFull(c, make([]byte, 1))
	}
	return err
}

// Connections are counted where they are accepted: one too many is refused, clients that
// have gone without a word are found out, and the end of the server is a reset for all.
func TestAcceptedWhereTheyAreCarried(t *testing.T) {
	testenv.NoLeaks(t)
	w := newWorld(t)
	w.echoServer(t, ":80")
	d := w.dialer(t, false).(*Inside)
	s := w.publish(t, d, hostport.Port{Protocol: "tcp", Number: 8080}, 80)
	s.mu.Lock()
	s.max = 1
	s.mu.Unlock()
	one := dialFrom(t, w.remote, "tcp", "10.77.0.1:8080")
	must(t, said(one))
	must(t, d.loop.Do(func() error {
		for near := range s.carried {
			for name, want := range map[[2]int]int{{unix.SOL_SOCKET, unix.SO_KEEPALIVE}: 1, {unix.SOL_TCP, unix.TCP_KEEPIDLE}: 60, {unix.SOL_TCP, unix.TCP_KEEPINTVL}: 30, {unix.SOL_TCP, unix.TCP_KEEPCNT}: 4} {
				if got, err := unix.GetsockoptInt(near, name[0], name[1]); err != nil || got != want {
					t.Errorf("option %v of a client is %d, want %d: %v", name, got, want, err)
				}
			}
		}
		if len(s.carried) != 1 {
			t.Errorf("%d connections", len(s.carried))
		}
		return nil
	}))
	other, err := tryFrom(w.remote, "tcp", "10.77.0.1:8080")
	if err == nil { // else the reset was quicker
		err = said(other)
		other.Close()
	}
	if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("one too many: %v", err)
	}
	listener := s.ports["8080/tcp"].(*directPort).listener
	s.Close()
	next, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, listener) // gets the number that the listener had
	must(t, err)
	s.Close()
	if err := unix.Close(next); err != nil {
		t.Errorf("a second Close has closed what is not the server's: %v", err)
	}
	if err := said(one); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("after the end of the server: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active != 0 || len(s.carried) != 0 {
		t.Errorf("%d connections are left", s.active)
	}
}

// Where there is no descriptor for a client it waits until there is one, and so it does if
// the server pauses meanwhile.
func TestWithoutDescriptors(t *testing.T) {
	testenv.NoLeaks(t)
	w := newWorld(t)
	w.echoServer(t, ":80")
	d := w.dialer(t, false).(*Inside)
	s := w.publish(t, d, hostport.Port{Protocol: "tcp", Number: 8080}, 80)
	p := s.ports["8080/tcp"].(*directPort)
	for _, pause := range []bool{false, true} {
		must(t, d.loop.Do(func() error { // as accept does
			d.loop.Forget(p.listener, false)
			p.starve()
			return nil
		}))
		if pause {
			if !s.Pause() {
				t.Fatal("busy")
			}
			s.Resume()
		}
		c := dialFrom(t, w.remote, "tcp", "10.77.0.1:8080")
		must(t, said(c))
		c.Close()
		for deadline := time.Now().Add(time.Minute); !s.Pause(); {
			if time.Now().After(deadline) {
				t.Fatal("busy for ever")
			}
		}
		s.Resume()
	}
}
