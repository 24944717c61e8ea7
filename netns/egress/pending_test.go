package egress

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/netns/router"
)

var bothFamilies = []string{nettest.RemoteAddr + ":80", "[" + nettest.RemoteAddr6 + "]:80"}

// unasked connects to a server that has just answered, while the process is stopped; nil if too
// much time has passed since.
func (p *testPod) unasked(address string) (c net.Conn) {
	p.t.Helper()
	nettest.Connect(p.t, p.ns, "tcp", address).Close()
	err := p.egress.loop.Do(func() error {
		c, _ = nettest.DialFrom(p.ns, "tcp", "", address, 50*time.Millisecond)
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

// The kernel accepts a connection to a server that has just answered another one at once, whichever
// side sends first.
func TestAnsweredRecently(t *testing.T) {
	w := newTestbed(t)
	p := w.pod(1)
	for _, address := range bothFamilies {
		nettest.Serve(t, w.Remote, address, func(c *net.TCPConn) { io.WriteString(c, "hello"); nettest.Echo(c) })
		nettest.Await(t, address+" is connected to at once", func() bool {
			c := p.unasked(address)
			if c == nil {
				return false
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(time.Minute))
			if _, err := io.ReadFull(c, make([]byte, len("hello"))); err != nil {
				t.Errorf("%s: the server's first word: %v", address, err)
			} else if err := nettest.RoundTrip(c, []byte("word")); err != nil {
				t.Errorf("%s: %v", address, err)
			}
			return true
		})
	}
	nettest.WaitIdle(t, p.egress)
}

// For a moment the kernel still accepts connections to a server that has stopped, and they are
// reset. Later ones are refused.
func TestAnsweredThenGone(t *testing.T) {
	w := newTestbed(t)
	p := w.pod(1)
	for _, address := range bothFamilies {
		nettest.Await(t, address+" is connected to in vain", func() bool {
			l := nettest.Serve(t, w.Remote, address, nettest.Echo)
			nettest.Connect(t, p.ns, "tcp", address).Close()
			l.Close()
			c, err := nettest.Dial(p.ns, "tcp", address)
			if errors.Is(err, unix.ECONNREFUSED) {
				return false // too much time has passed
			}
			if err != nil {
				t.Fatalf("%s: %v", address, err)
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(time.Minute))
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
				t.Errorf("%s: %v, want a reset", address, err)
			}
			return true
		})
		nettest.Await(t, "that is forgotten", func() bool { return !p.trusts() })
		if c, err := nettest.Dial(p.ns, "tcp", address); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("%s: %v, want that it is refused", address, err)
			if err == nil {
				c.Close()
			}
		}
	}
	nettest.WaitIdle(t, p.egress)
}

// trusts reports whether the set of answering servers has entries.
func (p *testPod) trusts() (any bool) {
	p.t.Helper()
	err := p.Router.Do(func() error {
		c, err := nftables.New()
		if err != nil {
			return err
		}
		tables, err := c.ListTables()
		for _, table := range tables {
			sets, serr := c.GetSets(table)
			err = errors.Join(err, serr)
			for _, s := range sets {
				elements, serr := c.GetSetElements(s)
				err = errors.Join(err, serr)
				any = any || strings.HasPrefix(s.Name, "answering") && len(elements) > 0
			}
		}
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return any
}

// The next process serves connections that the kernel accepts while no process runs.
func TestAcceptedBySuccessor(t *testing.T) {
	w := newTestbed(t)
	p := w.attach(1)
	traffic, err := w.Router.OpenTraffic(w.Pool, p.slot)
	if err != nil {
		t.Fatal(err)
	}
	serve := func() (kept router.TrafficFDs) {
		kept = copies(t, traffic)
		if p.egress, err = Start(Config{RouterNS: w.RouterNS, Pool: w.Pool, Slot: p.slot}, traffic); err != nil {
			t.Fatal(err)
		}
		return kept
	}
	kept := serve()
	defer func() { p.egress.Close(); kept.Close() }()
	address := bothFamilies[0]
	nettest.Serve(t, w.Remote, address, nettest.Echo)
	nettest.Await(t, "the kernel takes a connection", func() bool {
		nettest.Connect(t, p.ns, "tcp", address).Close()
		p.egress.Close()
		received := make(chan error, 1)
		go func() {
			c, err := nettest.Dial(p.ns, "tcp", address)
			if err == nil {
				err = nettest.RoundTrip(c, []byte("word"))
				c.Close()
			}
			received <- err
		}()
		taken := false
		nettest.Await(t, "the next connection is begun", func() bool {
			taken = isReadable(kept[router.TrafficTCP4])
			return taken || isReadable(kept[router.TrafficTUN])
		})
		traffic = kept
		kept = serve()
		if err := <-received; err != nil {
			t.Error(err)
		}
		nettest.WaitIdle(t, p.egress)
		return taken
	})
}

// copies returns duplicates of a pod's traffic descriptors, as pod init has them.
func copies(t *testing.T, traffic router.TrafficFDs) router.TrafficFDs {
	t.Helper()
	kept := router.TrafficFDs{}
	for name, file := range traffic {
		fd, err := rawsys.Dup(file)
		if err != nil {
			t.Fatal(err)
		}
		kept[name] = os.NewFile(uintptr(fd), name)
	}
	return kept
}

func isReadable(file *os.File) bool {
	polled := []unix.PollFd{{Fd: int32(file.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(polled, 0)
	return err == nil && n > 0
}
