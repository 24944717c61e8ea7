package relay

import (
	"testing"

	"golang.org/x/sys/unix"
)

// looks is how often a loop looks before it sleeps, of n times, if every one of so many
// looks is in vain; 1 is every look, 0 none.
func looks(s *spin, n, vain int) (looked int) {
	for range n {
		if s.next() {
			looked++
			s.learn(vain == 0 || looked%vain != 0)
		}
	}
	return looked
}

// While looks are worth it a loop looks each time; where none is it hardly does, and finds
// out when that changes.
func TestLooksWhereItIsWorthIt(t *testing.T) {
	const n = 100_000
	for _, c := range []struct {
		what            string
		vain            int
		atLeast, atMost int
	}{
		{"always worth it", 0, n, n},
		{"in vain once per connection", 4, n * 9 / 10, n},
		{"never worth it", 1, 1, 2 * (n/mostSkipped + 10)},
	} {
		t.Run(c.what, func(t *testing.T) {
			var s spin
			if got := looks(&s, n, c.vain); got < c.atLeast || got > c.atMost {
				t.Errorf("looked %d times of %d, want %d to %d", got, n, c.atLeast, c.atMost)
			}
			if got := looks(&s, n, 0); got < n-mostSkipped {
				t.Errorf("looked %d times of %d once it was worth it", got, n)
			}
			if got := looks(&s, n, 1); got > 2*(n/mostSkipped+10)+mostTrust {
				t.Errorf("looked %d times of %d once it was not any more", got, n)
			}
		})
	}
}

// Who carries a stream does not look at once.
func TestSleepsBetweenPartsOfAStream(t *testing.T) {
	var s spin
	s.learn(true)
	s.streamed()
	if got := looks(&s, sleepy, 0); got != 0 {
		t.Errorf("looked %d times", got)
	}
	if got := looks(&s, sleepy, 0); got != sleepy {
		t.Errorf("looked %d times of %d after the stream", got, sleepy)
	}
}

// What is there already says nothing of how soon something comes.
func TestLearnsNothingOfWhatIsThere(t *testing.T) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(epoll)
	ready, err := unix.Eventfd(1, unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ready)
	if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, ready, &unix.EpollEvent{Events: unix.EPOLLIN}); err != nil {
		t.Fatal(err)
	}
	l := &Loop{epoll: epoll}
	before := l.spin
	if n, err := l.wait(make([]unix.EpollEvent, 1)); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if l.spin != before {
		t.Errorf("it has learnt %+v", l.spin)
	}
}
