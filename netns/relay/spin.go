package relay

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/brief"
)

// To wake the loop's thread on an idle processor takes longer than what it does then for a
// small message or a new connection, and what follows on that often comes at once. So the
// loop keeps looking for a moment before it sleeps, for as long as most looks are worth it.
// They are not where nothing follows so soon, or where who should answer waits for the very
// processor on which the loop looks: then it tries ever more seldom.
const (
	// moment is how long it looks: longer than a processor that sleeps takes to answer. What
	// takes longer is not of this machine.
	moment = 100 * time.Microsecond
	// Bounds of what it has learnt, so that it soon learns otherwise.
	mostTrust, mostSkipped = 16, 1 << 10
	// sleepy is how often a loop sleeps at once after it has carried something of a stream,
	// which costs least in large portions.
	sleepy = 64
	// napTime is for how many milliseconds it sleeps first without telling Go's scheduler, which would
	// wake a thread of its own (sysmon) whenever the loop wakes, and have it go on on another one.
	napTime = 1
)

// napping are the loops of this process that keep from its other goroutines what they need to run
// (one of GOMAXPROCS). One at least is left to those.
var napping atomic.Int32

// nap is the first sleep, if one more loop may have it.
func (l *Loop) nap(events []unix.EpollEvent) int {
	defer napping.Add(-1)
	if int(napping.Add(1)) >= processors() {
		return 0
	}
	return tell(brief.Wait(l.epoll, events, napTime))
}

// processors are asked for once: to ask takes a lock of the scheduler's.
var processors = sync.OnceValue(func() int { return runtime.GOMAXPROCS(0) })

// spin is what a loop has learnt of how soon something comes.
type spin struct {
	trust   int // grows with each moment that was worth it, shrinks twice as fast
	skipped int // how often it has slept at once before the last try
	skip    int // how often it still does before the next
}

// streamed has the loop sleep, so that more of a stream comes meanwhile.
func (s *spin) streamed() { s.skip = max(s.skip, sleepy) }

// next says whether to look before sleeping.
func (s *spin) next() bool {
	if s.skip > 0 {
		s.skip--
		return false
	}
	return true
}

// learn takes what has become of a look.
func (s *spin) learn(worth bool) {
	switch {
	case worth:
		s.trust, s.skipped = min(s.trust+1, mostTrust), s.skipped/2
	case s.trust >= 2:
		s.trust -= 2
	default:
		s.trust, s.skipped = 0, min(2*s.skipped+1, mostSkipped)
		s.skip = s.skipped
	}
}

// wait waits for something.
func (l *Loop) wait(events []unix.EpollEvent) (int, error) {
	patience := l.patience()
	if n := look(l.epoll, events); n > 0 || patience == 0 {
		return n, nil // which says nothing of what follows soon
	}
	if l.spin.next() {
		for began := time.Now(); time.Since(began) < moment; {
			if n := look(l.epoll, events); n > 0 {
				l.spin.learn(true)
				return n, nil
			}
		}
		l.spin.learn(false)
	}
	if n := l.nap(events); n > 0 {
		return n, nil
	}
	return unix.EpollWait(l.epoll, events, patience)
}

// look tells of what there is now.
func look(epoll int, events []unix.EpollEvent) int { return tell(brief.Wait(epoll, events, 0)) }

// tell is how many events have been told of. Who waits next is told why there is none.
func tell(n int, err error) int {
	if err != nil {
		return 0
	}
	return n
}
