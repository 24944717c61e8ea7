package runner

import (
	"fmt"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// audience are the clients that are attached to an instance of a container: what it writes
// is copied to them as it comes, and nobody is waited for.
type audience struct {
	mu    sync.Mutex
	seats []*seat
	code  int
	over  chan struct{} // closed when the instance has ended and all was copied
}

// seat is a client's.
type seat struct {
	out  map[string]int // descriptors to write to, by stream; not blocking
	pod  string
	lost map[string]int // bytes that were not taken, by stream
}

func newAudience() *audience { return &audience{over: make(chan struct{})} }

// newSeat is for a client whose files are stdout and, without a terminal, stderr. It has
// descriptors of its own, until leave.
func newSeat(pod string, files []*os.File) (*seat, error) {
	s := &seat{pod: pod, out: map[string]int{}, lost: map[string]int{}}
	for i, stream := range []string{"stdout", "stderr"} {
		if i >= len(files) {
			break
		}
		fd, err := unix.FcntlInt(files[i].Fd(), unix.F_DUPFD_CLOEXEC, 3)
		if err == nil {
			s.out[stream] = fd
			err = unix.SetNonblock(fd, true)
		}
		if err != nil {
			s.close()
			return nil, fmt.Errorf("attach: %w", err)
		}
	}
	return s, nil
}

// enter lets a client hear what is written from now on.
func (a *audience) enter(s *seat) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.isOver() { // it is told at once
		s.finish()
		return
	}
	a.seats = append(a.seats, s)
}

// isOver says whether the instance has ended and all was copied.
func (a *audience) isOver() bool {
	select {
	case <-a.over:
		return true
	default:
		return false
	}
}

func (a *audience) leave(s *seat) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.Index(a.seats, s); i >= 0 {
		a.seats = slices.Delete(a.seats, i, i+1)
		s.close()
	}
}

// hear copies what was written to everybody.
func (a *audience) hear(stream string, b []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.seats {
		s.hear(stream, b)
	}
}

// end tells everybody that the instance has ended, with a code.
func (a *audience) end(code int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.code = code
	for _, s := range a.seats {
		s.finish()
	}
	a.seats = nil
	close(a.over)
}

// hear writes what a client takes at once. One that is slow is told what it has missed.
func (s *seat) hear(stream string, b []byte) {
	fd, ok := s.out[stream]
	if !ok || len(b) == 0 {
		return
	}
	if !s.admit(stream) {
		s.lost[stream] += len(b)
		return
	}
	n, err := unix.Write(fd, b)
	for err == unix.EINTR {
		n, err = unix.Write(fd, b)
	}
	if n = max(n, 0); n < len(b) {
		s.lost[stream] = len(b) - n
	}
}

// admit tells a client what it has missed, or reports that it does not take even that.
func (s *seat) admit(stream string) bool {
	if s.lost[stream] == 0 {
		return true
	}
	note := fmt.Sprintf("\r\npodrun: %d bytes are missing here; podrun logs %s has them\r\n", s.lost[stream], s.pod)
	if n, _ := unix.Write(s.out[stream], []byte(note)); n < len(note) {
		return false
	}
	s.lost[stream] = 0
	return true
}

// finish is for when nothing more comes.
func (s *seat) finish() {
	for stream := range s.out {
		s.admit(stream)
	}
	s.close()
}

func (s *seat) close() {
	for _, fd := range s.out {
		unix.Close(fd)
	}
	s.out = nil
}
