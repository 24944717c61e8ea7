package relay

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/rawsys"
)

// To wake the loop's thread on an idle processor takes longer than what it does then for a
// small message or a new connection, and what follows on that often comes at once. So the
// loop keeps looking for a moment before it sleeps, for as long as most looks are worth it.
// They are not where nothing follows so soon, or where who should answer waits for the very
// processor on which the loop looks: then it tries ever more seldom.
const (
	// spinTime is how long it looks: longer than a processor that sleeps takes to answer. What
	// takes longer is not of this machine.
	spinTime = 100 * time.Microsecond
	// Bounds of what it has learnt, so that it soon learns otherwise.
	maxScore, maxSkipped = 16, 1 << 10
	// streamSkips is how often a loop sleeps at once after it has carried something of a stream,
	// which costs least in large portions.
	streamSkips = 64
	// shortWaitMillis is for how many milliseconds it sleeps first without telling Go's scheduler, which would
	// wake a thread of its own (sysmon) whenever the loop wakes, and have it go on on another one.
	shortWaitMillis = 1
)

// shortWaiters are the loops of this process that keep from its other goroutines what they need to run
// (one of GOMAXPROCS). One at least is left to those.
var shortWaiters atomic.Int32

// shortWait is the first sleep, if one more loop may have it.
func (l *Loop) shortWait(events []unix.EpollEvent) int {
	defer shortWaiters.Add(-1)
	if int(shortWaiters.Add(1)) >= processors() {
		return 0
	}
	return countEvents(rawsys.EpollWait(l.epoll, events, shortWaitMillis))
}

// processors are asked for once: to ask takes a lock of the scheduler's.
var processors = sync.OnceValue(func() int { return runtime.GOMAXPROCS(0) })

// busyPoll is what a loop has learnt of how soon something comes.
type busyPoll struct {
	score   int // grows with each moment that was worth it, shrinks twice as fast
	skipped int // how often it has slept at once before the last try
	skip    int // how often it still does before the next
}

// streamed has the loop sleep, so that more of a stream comes meanwhile.
func (s *busyPoll) streamed() { s.skip = max(s.skip, streamSkips) }

// enabled says whether to look before sleeping.
func (s *busyPoll) enabled() bool {
	if s.skip > 0 {
		s.skip--
		return false
	}
	return true
}

// learn takes what has become of a look.
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

// wait waits for something.
func (l *Loop) wait(events []unix.EpollEvent) (int, error) {
	patience := l.timeout()
	if n := poll(l.epoll, events); n > 0 || patience == 0 {
		return n, nil // which says nothing of what follows soon
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
	return unix.EpollWait(l.epoll, events, patience)
}

// poll tells of what there is now.
func poll(epoll int, events []unix.EpollEvent) int {
	return countEvents(rawsys.EpollWait(epoll, events, 0))
}

// countEvents is how many events have been told of. Who waits next is told why there is none.
func countEvents(n int, err error) int {
	if err != nil {
		return 0
	}
	return n
}
