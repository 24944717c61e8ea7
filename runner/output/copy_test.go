package output

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

// A stream with small pieces in quick succession is not read for a moment; full pipes and rare pieces are
// read at once. A flood gets a larger pipe until it is silent.
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
		"in pieces":    {{time.Hour, 100, 0, 0}, {soon, 100, batchDelay, 0}, {batchDelay + soon, 100, batchDelay, 0}, {later, 100, 0, 0}},
		"whole pipes":  {{time.Hour, maxBatch, 0, 0}, {soon, maxBatch, 0, 0}, {soon, largeBatch, 0, 0}, {soon, largeBatch - 1, batchDelay, 0}},
		"a flood": {
			{time.Hour, largePipeAfter - 1, 0, 0}, {soon, 1, batchDelay, largePipeSize}, {soon, 2 * largePipeAfter, 0, 0}, {later, largePipeAfter, 0, 0},
			{quietTime, 100, 0, defaultPipeSize}, {quietTime, 100, 0, 0}, {soon, largePipeAfter, 0, largePipeSize},
		},
		"much, with silences": {{time.Hour, largePipeAfter - 1, 0, 0}, {quietTime, largePipeAfter - 1, 0, 0}, {2 * quietTime, largePipeAfter - 1, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			var g batching
			var now time.Duration
			for i, b := range batches {
				now += b.pause
				if alone, hold := g.next(b.n, now); alone != b.alone || hold != b.hold {
					t.Errorf("batch %d: left alone for %v, to hold %d, want %v and %d", i, alone, hold, b.alone, b.hold)
				}
			}
		})
	}
}

// An enlarged pipe has its normal size when its supervisor leaves it; if a pipe may not be enlarged, it is
// tried again later.
func TestWidePipe(t *testing.T) {
	testenv.NoLeaks(t)
	l, err := OpenLog(testLog(t, filepath.Join(t.TempDir(), "0.log")), func([]byte) {})
	if err != nil {
		t.Fatal(err)
	}
	w, err := l.Pipe("stdout")
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
	s := l.Streams[0]
	s.batching.pipeSize = largePipeSize
	s.setPipeSize(w.Fd(), largePipeSize)
	l.mu.Unlock()
	// The kernel refuses if the user's pipes have reached the limit.
	if refused := s.batching.pipeSize == 0; !refused && size() != largePipeSize || refused && size() > defaultPipeSize {
		t.Errorf("the pipe holds %d bytes, refused %v", size(), refused)
	}
	l.Suspend()
	if size() > defaultPipeSize {
		t.Errorf("a pipe nobody empties holds %d bytes, not %d", size(), defaultPipeSize)
	}
	s.batching.pipeSize = largePipeSize
	s.setPipeSize(^uintptr(0), largePipeSize)
	if s.batching.pipeSize != 0 {
		t.Error("what was refused counts as done")
	}
	l.Continue()
	w.Close()
	l.Drain()
}

// A supervisor that takes over a stream shrinks a pipe that another one has enlarged, even if it holds more
// at first than a small one can.
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
	_, refused := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, largePipeSize)
	s := &Stream{Name: "stdout", Pipe: r}
	s.readPipeSize()
	if s.batching.pipeSize != size() {
		t.Errorf("a pipe that holds %d bytes counts as one of %d", size(), s.batching.pipeSize)
	}
	if refused != nil { // this user's pipes have reached the limit
		t.Logf("none is made wide: %v", refused)
		return
	}
	if _, err := w.Write(make([]byte, 2*defaultPipeSize)); err != nil {
		t.Fatal(err)
	}
	s.setPipeSize(w.Fd(), s.batching.narrow())
	if size() != largePipeSize || s.batching.pipeSize != largePipeSize {
		t.Errorf("a full pipe holds %d bytes, and counts as one of %d", size(), s.batching.pipeSize)
	}
	if _, err := io.ReadFull(r, make([]byte, 2*defaultPipeSize)); err != nil {
		t.Fatal(err)
	}
	s.setPipeSize(w.Fd(), s.batching.narrow())
	if size() != defaultPipeSize || s.batching.narrow() != 0 {
		t.Errorf("an empty pipe holds %d bytes", size())
	}
}
