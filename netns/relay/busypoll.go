package relay

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/rawsys"
)

// Waking the loop's thread on an idle processor takes longer than handling a small message or a new
// connection, and the next event often follows at once. So the loop polls for a moment before it
// sleeps, for as long as most polls find something. Polls fail where nothing follows so soon, or
// where the process that should answer waits for the very processor on which the loop polls: then
// the loop polls ever more rarely.
const (
	// spinTime is how long it polls: longer than a sleeping processor takes to answer. A peer that
	// takes longer is not on this host.
	spinTime = 100 * time.Microsecond
	// Limits of the statistics, so that they adapt soon.
	maxScore, maxSkipped = 16, 1 << 10
	// streamSkips is how many times a loop sleeps without polling after it has carried part of a
	// stream, which costs least in large portions.
	streamSkips = 64
	// shortWaitMillis is how many milliseconds it sleeps first without reporting that to Go's
	// scheduler, which would wake a thread of its own (sysmon) whenever the loop wakes, and
	// continue the loop on another thread.
	shortWaitMillis = 1
)

// shortWaiters is the number of loops of this process in a short wait, which keep a P (one of
// GOMAXPROCS) from other goroutines. At least one P is left to those.
var shortWaiters atomic.Int32

// shortWait is the first sleep, if one more loop may have it.
func (l *Loop) shortWait(events []unix.EpollEvent) int {
	defer shortWaiters.Add(-1)
	if int(shortWaiters.Add(1)) >= processors() {
		return 0
	}
	return countEvents(rawsys.EpollWait(l.epoll, events, shortWaitMillis))
}

// processors is read once: reading it takes a lock of the scheduler.
var processors = sync.OnceValue(func() int { return runtime.GOMAXPROCS(0) })

// busyPoll is a loop's statistics of how soon the next event follows.
type busyPoll struct {
	score   int // grows with each successful poll, shrinks twice as fast
	skipped int // how many sleeps without polling preceded the last poll
	skip    int // how many remain before the next
}

// streamed makes the loop sleep, so that more of a stream arrives meanwhile.
func (s *busyPoll) streamed() { s.skip = max(s.skip, streamSkips) }

// enabled reports whether to poll before sleeping.
func (s *busyPoll) enabled() bool {
	if s.skip > 0 {
		s.skip--
		return false
	}
	return true
}

// learn records the result of a poll.
func (s *busyPoll) learn(worth bool) {
	switch {
	case worth:
		s.score, s.skipped = min(s.score+1, maxScore), s.skipped/2
	case s.score >= 2:
		s.score -= 2
	default:
		s.score, s.skipped = 0, min(2*s.skipped+1, maxSkipped)
		s.skip = s.skipped
	}
}

// wait waits for events.
func (l *Loop) wait(events []unix.EpollEvent) (int, error) {
	timeout := l.timeout()
	if n := poll(l.epoll, events); n > 0 || timeout == 0 {
		return n, nil // this does not predict what follows
	}
	if l.spin.enabled() {
		for began := time.Now(); time.Since(began) < spinTime; {
			if n := poll(l.epoll, events); n > 0 {
				l.spin.learn(true)
				return n, nil
			}
		}
		l.spin.learn(false)
	}
	if n := l.shortWait(events); n > 0 {
		return n, nil
	}
	return unix.EpollWait(l.epoll, events, timeout)
}

// poll returns the events that are pending now.
func poll(epoll int, events []unix.EpollEvent) int {
	return countEvents(rawsys.EpollWait(epoll, events, 0))
}

// countEvents returns the number of events, 0 after an error: the next wait returns the same error.
func countEvents(n int, err error) int {
	if err != nil {
		return 0
	}
	return n
}
