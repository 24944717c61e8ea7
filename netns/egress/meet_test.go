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
	"github.com/podrun/podrun/netns"
)

var bothFamilies = []string{nettest.RemoteAddr + ":80", "[" + nettest.RemoteAddr6 + "]:80"}

// unasked connects to who has just answered while the process does nothing; nil if that has been
// too long ago.
func (p *testPod) unasked(at string) (c net.Conn) {
	p.t.Helper()
	nettest.Connect(p.t, p.ns, "tcp", at).Close()
	err := p.egress.loop.Do(func() error {
		c, _ = nettest.DialFrom(p.ns, "tcp", "", at, 50*time.Millisecond)
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

// A connection to who has just answered another is taken by the kernel at once, whoever of both
// speaks first.
func TestWhoHasJustAnswered(t *testing.T) {
	w := newWorld(t)
	p := w.pod(1)
	for _, at := range bothFamilies {
		nettest.Serve(t, w.Remote, at, func(c *net.TCPConn) { io.WriteString(c, "hello"); nettest.Echo(c) })
		nettest.Await(t, at+" is connected to at once", func() bool {
			c := p.unasked(at)
			if c == nil {
				return false
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(time.Minute))
			if _, err := io.ReadFull(c, make([]byte, len("hello"))); err != nil {
				t.Errorf("%s: the server's first word: %v", at, err)
			} else if err := nettest.Exchange(c, []byte("word")); err != nil {
				t.Errorf("%s: %v", at, err)
			}
			return true
		})
	}
	nettest.Idle(t, p.egress)
}

// Who has gone since it answered is still connected to for a moment, in vain: the connection is
// reset. Then it is refused again.
func TestWhoAnsweredHasGone(t *testing.T) {
	w := newWorld(t)
	p := w.pod(1)
	for _, at := range bothFamilies {
		nettest.Await(t, at+" is connected to in vain", func() bool {
			l := nettest.Serve(t, w.Remote, at, nettest.Echo)
			nettest.Connect(t, p.ns, "tcp", at).Close()
			l.Close()
			c, err := nettest.Dial(p.ns, "tcp", at)
			if errors.Is(err, unix.ECONNREFUSED) {
				return false // it was too long ago
			}
			if err != nil {
				t.Fatalf("%s: %v", at, err)
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(time.Minute))
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
				t.Errorf("%s: %v, want a reset", at, err)
			}
			return true
		})
		nettest.Await(t, "that is forgotten", func() bool { return !p.trusts() })
		if c, err := nettest.Dial(p.ns, "tcp", at); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("%s: %v, want that it is refused", at, err)
			if err == nil {
				c.Close()
			}
		}
	}
	nettest.Idle(t, p.egress)
}

// trusts says whether there is anybody who has just answered.
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

// What is taken by the kernel while there is no process is served by the next one.
func TestTakenBetweenTwoProcesses(t *testing.T) {
	w := newWorld(t)
	p := w.attach(1)
	wires, err := w.Router.Wire(w.Pool, p.slot)
	if err != nil {
		t.Fatal(err)
	}
	kept := netns.Wires{}
	for name, file := range wires {
		raw, err := file.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		raw.Control(func(fd uintptr) {
			own, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 3)
			if err != nil {
				t.Fatal(err)
			}
			kept[name] = os.NewFile(uintptr(own), name)
		})
	}
	config := Config{RouterNS: w.RouterNS, Pool: w.Pool, Slot: p.slot}
	if p.egress, err = Serve(config, wires); err != nil {
		t.Fatal(err)
	}
	at := bothFamilies[0]
	nettest.Serve(t, w.Remote, at, nettest.Echo)
	nettest.Connect(t, p.ns, "tcp", at).Close()
	p.egress.Close()
	heard := make(chan error, 1)
	go func() {
		c, err := nettest.Dial(p.ns, "tcp", at)
		if err == nil {
			err = nettest.Exchange(c, []byte("word"))
			c.Close()
		}
		heard <- err
	}()
	nettest.Await(t, "the next connection is begun", func() bool { return isReadable(t, kept[netns.WireTCP4]) || isReadable(t, kept[netns.WireTUN]) })
	if p.egress, err = Serve(config, kept); err != nil {
		t.Fatal(err)
	}
	defer p.egress.Close()
	if err := <-heard; err != nil {
		t.Error(err)
	}
	nettest.Idle(t, p.egress)
}

func isReadable(t *testing.T, file *os.File) bool {
	t.Helper()
	at := []unix.PollFd{{Fd: int32(file.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(at, 0)
	return err == nil && n > 0
}

// What would be too much waits: it is heard when there is room, and reset if there is an end before.
func TestTooMany(t *testing.T) {
	w := newWorld(t)
	at := bothFamilies[0]
	nettest.Serve(t, w.Remote, at, nettest.Echo)
	for i, ends := range []bool{false, true} {
		p := w.pod(1 + netns.Slot(i))
		p.egress.reading.Lock()
		p.egress.max = 2
		p.egress.reading.Unlock()
		nettest.Await(t, "a third is taken by the kernel", func() bool {
			first, second := nettest.Connect(t, p.ns, "tcp", at), nettest.Connect(t, p.ns, "tcp", at)
			defer second.Close()
			third, err := nettest.DialFrom(p.ns, "tcp", "", at, 50*time.Millisecond)
			if err != nil { // it would be asked for again, for as long as there are two
				first.Close()
				return false
			}
			defer third.Close()
			third.SetDeadline(time.Now().Add(time.Minute))
			nettest.Await(t, "it waits", func() (waits bool) {
				p.egress.loop.Do(func() error { waits = len(p.egress.tcp.late) == 1; return nil })
				return waits
			})
			if ends {
				p.egress.Close()
				if _, err := third.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
					t.Errorf("in the end: %v, want a reset", err)
				}
				return true
			}
			first.Close()
			if err := nettest.Exchange(third, []byte("word")); err != nil {
				t.Error(err)
			}
			third.Close()
			second.Close()
			nettest.Idle(t, p.egress)
			return true
		})
	}
}

// However many come, only so many have a descriptor. The others are heard later, too.
func TestFarTooMany(t *testing.T) {
	w := newWorld(t)
	p := w.pod(1)
	limit := func(flows int64) { p.egress.loop.Do(func() error { p.egress.max = flows; return nil }) }
	at := bothFamilies[0]
	nettest.Serve(t, w.Remote, at, nettest.Echo)
	nettest.Await(t, "too many are taken by the kernel", func() bool {
		limit(1)
		all := []net.Conn{nettest.Connect(t, p.ns, "tcp", at)}
		defer func() {
			for _, c := range all {
				c.Close()
			}
		}()
		for len(all) < mostLate+10 {
			c, err := nettest.DialFrom(p.ns, "tcp", "", at, 50*time.Millisecond)
			if err != nil {
				limit(maxFlows)
				return false // it has been too long since the first was answered
			}
			all = append(all, c)
		}
		late := 0
		nettest.Await(t, "as many wait as may", func() bool {
			starves := false
			p.egress.loop.Do(func() error {
				late, starves = len(p.egress.tcp.late), len(p.egress.tcp.starved) > 0
				return nil
			})
			return starves
		})
		if late != mostLate {
			t.Errorf("%d wait, want %d", late, mostLate)
		}
		limit(maxFlows)
		for i, c := range all {
			c.SetDeadline(time.Now().Add(time.Minute))
			if err := nettest.Exchange(c, []byte("word")); err != nil {
				t.Errorf("connection %d: %v", i, err)
			}
		}
		return true
	})
	nettest.Idle(t, p.egress)
}
