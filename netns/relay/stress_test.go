package relay

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

// testPeer is one end of a connection; each sends different data.
type testPeer struct {
	*net.TCPConn
	seed, peerSeed int64         // determine the data
	size           int           // how much each sends
	late           chan struct{} // closed when the fast ones have ended
}

// send sends the next part of its data.
func (s testPeer) send() error {
	_, err := io.CopyN(struct{ io.Writer }{s.TCPConn}, rand.New(rand.NewSource(s.seed)), int64(s.size))
	return err
}

// expect reads n bytes, or to the end if that is sooner; each must be the peer's.
func (s testPeer) expect(n int) error {
	r := rand.New(rand.NewSource(s.peerSeed))
	got, want := make([]byte, 8<<10), make([]byte, 8<<10)
	for received := 0; received < n; {
		k, err := s.Read(got[:min(len(got), n-received)])
		if r.Read(want[:k]); !bytes.Equal(got[:k], want[:k]) {
			return fmt.Errorf("what comes after %d bytes is not what was said", received)
		}
		if received += k; received < n && err != nil {
			return fmt.Errorf("after %d bytes of %d: %w", received, n, err)
		}
	}
	return nil
}

// ends checks that the peer has ended as expected.
func (s testPeer) ends(want error) error {
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, want) {
		return fmt.Errorf("the end is %v, want %v", err, want)
	}
	return nil
}

func (s testPeer) all() error { return cmp.Or(s.expect(s.size), s.ends(io.EOF)) }

// manners are patterns of communication between two peers.
var manners = map[string][2]func(testPeer) error{
	"both at once": {both, both},
	"in turn": {
		func(s testPeer) error { return cmp.Or(s.send(), s.CloseWrite(), s.all()) },
		func(s testPeer) error { return cmp.Or(s.all(), s.send()) },
	},
	"word by word": {
		func(s testPeer) error {
			for range 50 {
				if err := cmp.Or(one(s.Write([]byte{7})), readOne(s)); err != nil {
					return err
				}
			}
			return nil
		},
		func(s testPeer) error { _, err := io.Copy(struct{ io.Writer }{s}, struct{ io.Reader }{s}); return err },
	},
	"who hears resets": {
		func(s testPeer) error { defer Reset(s.TCPConn); return s.expect(s.size / 2) },
		func(s testPeer) error {
			for { // until it is closed
				if s.send() != nil {
					return nil
				}
				s.seed = 0
			}
		},
	},
	"who speaks resets": {
		func(s testPeer) error {
			return cmp.Or(s.expect(s.size), one(s.Write([]byte{7})), s.ends(syscall.ECONNRESET))
		},
		func(s testPeer) error { defer Reset(s.TCPConn); return cmp.Or(s.send(), readOne(s)) },
	},
	"who hears goes": {
		func(s testPeer) error { return readOne(s) },
		func(s testPeer) error { s.send(); io.Copy(io.Discard, s); return nil },
	},
	"nothing": {func(testPeer) error { return nil }, func(testPeer) error { return nil }},
}

// late reads only when all others have ended.
var late = [2]func(testPeer) error{
	func(s testPeer) error { s.size += 1 << 20; <-s.late; return s.all() },
	func(s testPeer) error { s.size += 1 << 20; return cmp.Or(s.send(), s.CloseWrite(), s.ends(io.EOF)) },
}

func both(s testPeer) error {
	sent := make(chan error, 1)
	go func() { sent <- cmp.Or(s.send(), s.CloseWrite()) }()
	return cmp.Or(s.all(), <-sent)
}

func one(_ int, err error) error { return err }

// Many connections at once, of all patterns: each receives exactly its peer's data and its peer's
// kind of end; slow readers block no other connection and hold no buffers meanwhile; and nothing
// remains.
func TestStorm(t *testing.T) {
	times, _ := strconv.Atoi(cmp.Or(os.Getenv("PODRUN_RELAYS"), "1"))
	for n := range times {
		t.Run(strconv.Itoa(n), func(t *testing.T) { storm(t, int64(n)) })
	}
}

func storm(t *testing.T, seed int64) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	l := newLoop(t)
	r := rand.New(rand.NewSource(seed))
	var quick, slow sync.WaitGroup
	hearken := make(chan struct{})
	begin := func(name string, manner [2]func(testPeer) error, group *sync.WaitGroup) {
		client, server := carried(t, l)
		a := testPeer{client, r.Int63(), r.Int63(), 1 + r.Intn(2<<20)>>r.Intn(21), hearken}
		b := testPeer{server, a.peerSeed, a.seed, a.size, hearken}
		for i, s := range []testPeer{a, b} {
			group.Go(func() {
				defer s.Close()
				if err := manner[i](s); err != nil {
					t.Errorf("%s, side %d, of %d bytes: %v", name, i, s.size, err)
				}
			})
		}
	}
	for range 10 {
		begin("late", late, &slow)
		for name, m := range manners {
			for range 2 {
				begin(name, m, &quick)
			}
		}
	}
	quick.Wait()
	quiet(t, l)
	close(hearken)
	slow.Wait()
	quiet(t, l)
	err := l.Do(func() error {
		if len(l.conns)+len(l.watched)+len(l.tickers)+len(l.idlePipes) > 0 {
			return fmt.Errorf("%d joints, %d descriptors, %d ticks and %d pipes stay", len(l.conns), len(l.watched), len(l.tickers), len(l.idlePipes))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// quiet returns when a loop is idle.
func quiet(t *testing.T, l *Loop) {
	t.Helper()
	const while = 100 // ms
	for deadline := time.Now().Add(time.Minute); ; {
		reported, err := unix.Poll([]unix.PollFd{{Fd: int32(l.epoll), Events: unix.POLLIN}}, while)
		again := -1
		if derr := l.Do(func() error { again = len(l.runnable); return nil }); derr != nil {
			t.Fatal(derr)
		}
		if err == nil && reported == 0 && again == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the loop goes on: %d, %v; %d have their turn", reported, err, again)
		}
	}
}

// A stream has one turn for each turn of other connections, however often events report it.
func TestStreamsTakeTurns(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	l := newLoop(t)
	client, server := carried(t, l)
	err := l.Do(func() error {
		for j := range l.conns {
			j.queued = true
			l.runnable = append(l.runnable, j)
			for range 3 {
				if j.handle(&j.sides[0], unix.EPOLLIN); !j.queued || len(l.runnable) != 1 {
					return fmt.Errorf("it waits (%v) for %d turns", j.queued, len(l.runnable))
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	client.Write([]byte("x"))
	if err := readOne(server); err != nil {
		t.Error(err)
	}
	quiet(t, l)
}
