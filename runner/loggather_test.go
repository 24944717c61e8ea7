package runner

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

// What comes in small pieces in quick succession is left alone for a moment; whole pipes are
// not, nor what comes now and then. A flood gets a wider pipe, until it is silent.
func TestGathering(t *testing.T) {
	type batch struct {
		pause time.Duration
		n     int
		alone time.Duration
		hold  int
	}
	const soon, later = 50 * time.Microsecond, 10 * time.Millisecond
	for name, batches := range map[string][]batch{
		"now and then": {{time.Hour, 100, 0, 0}, {later, 100, 0, 0}, {later, 4096, 0, 0}},
		"in pieces":    {{time.Hour, 100, 0, 0}, {soon, 100, gatherTime, 0}, {gatherTime + soon, 100, gatherTime, 0}, {later, 100, 0, 0}},
		"whole pipes":  {{time.Hour, maxPeek, 0, 0}, {soon, maxPeek, 0, 0}, {soon, ample, 0, 0}, {soon, ample - 1, gatherTime, 0}},
		"a flood": {
			{time.Hour, flood - 1, 0, 0}, {soon, 1, gatherTime, widePipe}, {soon, 2 * flood, 0, 0}, {later, flood, 0, 0},
			{silence, 100, 0, usualPipe}, {silence, 100, 0, 0}, {soon, flood, 0, widePipe},
		},
		"much, with silences": {{time.Hour, flood - 1, 0, 0}, {silence, flood - 1, 0, 0}, {2 * silence, flood - 1, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			var g gathering
			var now time.Duration
			for i, b := range batches {
				now += b.pause
				if alone, hold := g.after(b.n, now); alone != b.alone || hold != b.hold {
					t.Errorf("batch %d: left alone for %v, to hold %d, want %v and %d", i, alone, hold, b.alone, b.hold)
				}
			}
		})
	}
}

// A pipe that was made wide is as it was when its supervisor leaves it; one that may not be
// made wide is tried again.
func TestWidePipe(t *testing.T) {
	testenv.NoLeaks(t)
	l, err := openLog(testLog(t, filepath.Join(t.TempDir(), "0.log")), func([]byte) {})
	if err != nil {
		t.Fatal(err)
	}
	w, err := l.pipe("stdout")
	if err != nil {
		t.Fatal(err)
	}
	size := func() int {
		n, err := unix.FcntlInt(w.Fd(), unix.F_GETPIPE_SZ, 0)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	l.mu.Lock()
	s := l.streams[0]
	s.gathering.size = widePipe
	s.hold(w.Fd(), widePipe)
	l.mu.Unlock()
	// A user who has as many pipes as he may is refused.
	if refused := s.gathering.size == 0; !refused && size() != widePipe || refused && size() > usualPipe {
		t.Errorf("the pipe holds %d bytes, refused %v", size(), refused)
	}
	l.pause()
	if size() > usualPipe {
		t.Errorf("a pipe nobody empties holds %d bytes, not %d", size(), usualPipe)
	}
	s.gathering.size = widePipe
	s.hold(^uintptr(0), widePipe)
	if s.gathering.size != 0 {
		t.Error("what was refused counts as done")
	}
	l.resume()
	w.Close()
	l.drain()
}

// Who takes a stream over makes its pipe small again that another made wide, even if more is in it
// at first than a small one holds.
func TestWidePipeOfAnother(t *testing.T) {
	testenv.NoLeaks(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	size := func() int {
		n, err := unix.FcntlInt(w.Fd(), unix.F_GETPIPE_SZ, 0)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	_, refused := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, widePipe)
	s := &stream{name: "stdout", pipe: r}
	s.measure()
	if s.gathering.size != size() {
		t.Errorf("a pipe that holds %d bytes counts as one of %d", size(), s.gathering.size)
	}
	if refused != nil { // this user has as many pipes as he may
		t.Logf("none is made wide: %v", refused)
		return
	}
	if _, err := w.Write(make([]byte, 2*usualPipe)); err != nil {
		t.Fatal(err)
	}
	s.hold(w.Fd(), s.gathering.narrow())
	if size() != widePipe || s.gathering.size != widePipe {
		t.Errorf("a full pipe holds %d bytes, and counts as one of %d", size(), s.gathering.size)
	}
	if _, err := io.ReadFull(r, make([]byte, 2*usualPipe)); err != nil {
		t.Fatal(err)
	}
	s.hold(w.Fd(), s.gathering.narrow())
	if size() != usualPipe || s.gathering.narrow() != 0 {
		t.Errorf("an empty pipe holds %d bytes", size())
	}
}
