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

// speaker is one end of a connection; no two say the same.
type speaker struct {
	*net.TCPConn
	says, hears int64         // what
	size        int           // how much each says
	late        chan struct{} // closed when the quick ones have ended
}

// say says the next of what it says.
func (s speaker) say() error {
	_, err := io.CopyN(struct{ io.Writer }{s.TCPConn}, rand.New(rand.NewSource(s.says)), int64(s.size))
	return err
}

// hear listens to n bytes, or to the end if that is sooner; each has to be the other's.
func (s speaker) hear(n int) error {
	r := rand.New(rand.NewSource(s.hears))
	got, want := make([]byte, 8<<10), make([]byte, 8<<10)
	for heard := 0; heard < n; {
		k, err := s.Read(got[:min(len(got), n-heard)])
		if r.Read(want[:k]); !bytes.Equal(got[:k], want[:k]) {
			return fmt.Errorf("what comes after %d bytes is not what was said", heard)
		}
		if heard += k; heard < n && err != nil {
			return fmt.Errorf("after %d bytes of %d: %w", heard, n, err)
		}
	}
	return nil
}

// ends says whether the other has ended as it should.
func (s speaker) ends(want error) error {
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, want) {
		return fmt.Errorf("the end is %v, want %v", err, want)
	}
	return nil
}

func (s speaker) all() error { return cmp.Or(s.hear(s.size), s.ends(io.EOF)) }

// manners are ways of two to speak with each other.
var manners = map[string][2]func(speaker) error{
	"both at once": {both, both},
	"in turn": {
		func(s speaker) error { return cmp.Or(s.say(), s.CloseWrite(), s.all()) },
		func(s speaker) error { return cmp.Or(s.all(), s.say()) },
	},
	"word by word": {
		func(s speaker) error {
			for range 50 {
				if err := cmp.Or(one(s.Write([]byte{7})), readOne(s)); err != nil {
					return err
				}
			}
			return nil
		},
		func(s speaker) error { _, err := io.Copy(struct{ io.Writer }{s}, struct{ io.Reader }{s}); return err },
	},
	"who hears resets": {
		func(s speaker) error { defer Reset(s.TCPConn); return s.hear(s.size / 2) },
		func(s speaker) error {
			for { // until that is known
				if s.say() != nil {
					return nil
				}
				s.says = 0
			}
		},
	},
	"who speaks resets": {
		func(s speaker) error {
			return cmp.Or(s.hear(s.size), one(s.Write([]byte{7})), s.ends(syscall.ECONNRESET))
		},
		func(s speaker) error { defer Reset(s.TCPConn); return cmp.Or(s.say(), readOne(s)) },
	},
	"who hears goes": {
		func(s speaker) error { return readOne(s) },
		func(s speaker) error { s.say(); io.Copy(io.Discard, s); return nil },
	},
	"nothing": {func(speaker) error { return nil }, func(speaker) error { return nil }},
}

// late hears when all others have ended.
var late = [2]func(speaker) error{
	func(s speaker) error { s.size += 1 << 20; <-s.late; return s.all() },
	func(s speaker) error { s.size += 1 << 20; return cmp.Or(s.say(), s.CloseWrite(), s.ends(io.EOF)) },
}

func both(s speaker) error {
	said := make(chan error, 1)
	go func() { said <- cmp.Or(s.say(), s.CloseWrite()) }()
	return cmp.Or(s.all(), <-said)
}

func one(_ int, err error) error { return err }

// Many at once, of all manners: everybody hears what was said to him and nothing else, and
// how it ended; those who hear late hold up nobody, and cost nothing meanwhile; and of all
// nothing is left.
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
	begin := func(name string, manner [2]func(speaker) error, group *sync.WaitGroup) {
		client, server := carried(t, l)
		a := speaker{client, r.Int63(), r.Int63(), 1 + r.Intn(2<<20)>>r.Intn(21), hearken}
		b := speaker{server, a.hears, a.says, a.size, hearken}
		for i, s := range []speaker{a, b} {
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
		if len(l.joints)+len(l.watched)+len(l.ticks)+len(l.spare) > 0 {
			return fmt.Errorf("%d joints, %d descriptors, %d ticks and %d pipes stay", len(l.joints), len(l.watched), len(l.ticks), len(l.spare))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// quiet returns when a loop has nothing to do.
func quiet(t *testing.T, l *Loop) {
	t.Helper()
	const while = 100 // ms
	for deadline := time.Now().Add(time.Minute); ; {
		told, err := unix.Poll([]unix.PollFd{{Fd: int32(l.epoll), Events: unix.POLLIN}}, while)
		again := -1
		if derr := l.Do(func() error { again = len(l.again); return nil }); derr != nil {
			t.Fatal(derr)
		}
		if err == nil && told == 0 && again == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the loop goes on: %d, %v; %d have their turn", told, err, again)
		}
	}
}

// However often a stream is told of, it has one turn where others have one.
func TestOneTurn(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	l := newLoop(t)
	client, server := carried(t, l)
	err := l.Do(func() error {
		for j := range l.joints {
			j.queued = true
			l.again = append(l.again, j)
			for range 3 {
				if j.hear(&j.ends[0], unix.EPOLLIN); !j.queued || len(l.again) != 1 {
					return fmt.Errorf("it waits (%v) for %d turns", j.queued, len(l.again))
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
