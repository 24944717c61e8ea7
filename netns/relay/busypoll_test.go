package relay

import (
	"testing"

	"golang.org/x/sys/unix"
)

// looks returns how many of n waits begin with a poll, if every vain-th poll finds nothing; with 1
// all polls find nothing, with 0 none.
func looks(s *busyPoll, n, vain int) (looked int) {
	for range n {
		if s.enabled() {
			looked++
			s.learn(vain == 0 || looked%vain != 0)
		}
	}
	return looked
}

// While polls find events a loop polls each time; where none does it hardly polls, and detects when
// that changes.
func TestBusyPollsWhileItPays(t *testing.T) {
	const n = 100_000
	for _, c := range []struct {
		what            string
		vain            int
		atLeast, atMost int
	}{
		{"always worth it", 0, n, n},
		{"in vain once per connection", 4, n * 9 / 10, n},
		{"never worth it", 1, 1, 2 * (n/maxSkipped + 10)},
	} {
		t.Run(c.what, func(t *testing.T) {
			var s busyPoll
			if got := looks(&s, n, c.vain); got < c.atLeast || got > c.atMost {
				t.Errorf("looked %d times of %d, want %d to %d", got, n, c.atLeast, c.atMost)
			}
			if got := looks(&s, n, 0); got < n-maxSkipped {
				t.Errorf("looked %d times of %d once it was worth it", got, n)
			}
			if got := looks(&s, n, 1); got > 2*(n/maxSkipped+10)+maxScore {
				t.Errorf("looked %d times of %d once it was not any more", got, n)
			}
		})
	}
}

// A loop that carries a stream does not poll.
func TestSleepsWithinAStream(t *testing.T) {
	var s busyPoll
	s.learn(true)
	s.streamed()
	if got := looks(&s, streamSkips, 0); got != 0 {
		t.Errorf("looked %d times", got)
	}
	if got := looks(&s, streamSkips, 0); got != streamSkips {
		t.Errorf("looked %d times of %d after the stream", got, streamSkips)
	}
}

// told returns a loop that does not run and has a pending event.
func told(t *testing.T) *Loop {
	t.Helper()
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(epoll) })
	ready, err := unix.Eventfd(1, unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(ready) })
	if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, ready, &unix.EpollEvent{Events: unix.EPOLLIN}); err != nil {
		t.Fatal(err)
	}
	return &Loop{epoll: epoll}
}

// An event that is already pending does not predict how soon the next follows.
func TestReadyEventsDoNotCount(t *testing.T) {
	l := told(t)
	before := l.spin
	if n, err := l.wait(make([]unix.EpollEvent, 1)); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if l.spin != before {
		t.Errorf("it has learnt %+v", l.spin)
	}
}

// However many loops there are, one P is left to the process's other goroutines.
func TestShortWaitersAreBounded(t *testing.T) {
	l, events := told(t), make([]unix.EpollEvent, 1)
	for others := range processors() + 1 {
		want := 0
		if others < processors()-1 {
			want = 1 // otherwise it would have been woken
		}
		shortWaiters.Store(int32(others))
		if n := l.shortWait(events); n != want {
			t.Errorf("with %d others of %d processors: %d", others, processors(), n)
		}
		if n := shortWaiters.Load(); n != int32(others) {
			t.Errorf("%d nap afterwards, of %d", n, others)
		}
	}
	shortWaiters.Store(0)
}
