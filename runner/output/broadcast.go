package output

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/crilog"
)

// Broadcaster copies the output of an instance to the attached clients (subscribers) as it is written. It
// never waits for a client.
type Broadcaster struct {
	mu          sync.Mutex
	subscribers []*Subscriber
	ExitCode    int
	Done        chan struct{} // closed when the instance has exited and all output was copied
}

// Subscriber is one attached client.
type Subscriber struct {
	fds     map[string]int // descriptors to write to, by stream; non-blocking
	pod     string
	dropped map[string]int // bytes that the client did not accept, by stream
}

// NewBroadcaster returns a Broadcaster without subscribers.
func NewBroadcaster() *Broadcaster { return &Broadcaster{Done: make(chan struct{})} }

// NewSubscriber returns the Subscriber of a client. files are its stdout and, without a terminal, stderr;
// the Subscriber has copies of them until Unsubscribe.
func NewSubscriber(pod string, files []*os.File) (*Subscriber, error) {
	s := &Subscriber{pod: pod, fds: map[string]int{}, dropped: map[string]int{}}
	for i, stream := range []string{"stdout", "stderr"} {
		if i >= len(files) {
			break
		}
		fd, err := unix.FcntlInt(files[i].Fd(), unix.F_DUPFD_CLOEXEC, 3)
		if err == nil {
			s.fds[stream] = fd
			err = unix.SetNonblock(fd, true)
		}
		if err != nil {
			s.close()
			return nil, fmt.Errorf("attach: %w", err)
		}
	}
	return s, nil
}

// Subscribe sends a client what is written from now on.
func (a *Broadcaster) Subscribe(s *Subscriber) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.isDone() { // nothing is written from now on
		s.finish()
		return
	}
	a.subscribers = append(a.subscribers, s)
}

// isDone reports whether the instance has exited and all output was copied.
func (a *Broadcaster) isDone() bool {
	select {
	case <-a.Done:
		return true
	default:
		return false
	}
}

// Unsubscribe removes and closes a subscriber, if it is still there.
func (a *Broadcaster) Unsubscribe(s *Subscriber) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.Index(a.subscribers, s); i >= 0 {
		a.subscribers = slices.Delete(a.subscribers, i, i+1)
		s.close()
	}
}

// Write copies output to all subscribers.
func (a *Broadcaster) Write(stream string, b []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.subscribers {
		s.write(stream, b)
	}
}

// Finish ends the output of all subscribers after the instance has exited with a code, and then closes Done.
func (a *Broadcaster) Finish(code int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ExitCode = code
	for _, s := range a.subscribers {
		s.finish()
	}
	a.subscribers = nil
	close(a.Done)
}

// write writes what a client accepts at once. A slow client gets a message about what it has missed.
func (s *Subscriber) write(stream string, b []byte) {
	fd, ok := s.fds[stream]
	if !ok || len(b) == 0 {
		return
	}
	if !s.reportDropped(stream) {
		s.dropped[stream] += len(b)
		return
	}
	n, err := unix.Write(fd, b)
	for err == unix.EINTR {
		n, err = unix.Write(fd, b)
	}
	if n = max(n, 0); n < len(b) {
		s.dropped[stream] = len(b) - n
	}
}

// reportDropped sends a client a message about what it has missed, and reports whether the client accepted the
// message.
func (s *Subscriber) reportDropped(stream string) bool {
	if s.dropped[stream] == 0 {
		return true
	}
	note := fmt.Sprintf("\r\npodrun: %d bytes are missing here; podrun logs %s shows them\r\n", s.dropped[stream], s.pod)
	if n, _ := unix.Write(s.fds[stream], []byte(note)); n < len(note) {
		return false
	}
	s.dropped[stream] = 0
	return true
}

// finish ends a client's output: nothing more follows.
func (s *Subscriber) finish() {
	for stream := range s.fds {
		s.reportDropped(stream)
	}
	s.close()
}

func (s *Subscriber) close() {
	for _, fd := range s.fds {
		unix.Close(fd)
	}
	s.fds = nil
}

// ErrEnded is the error for a client of a container that has exited, and whose output is completely in the log.
var ErrEnded = errors.New("it has ended")

// SubscribeFromStart is Broadcaster.Subscribe for a client that also receives the earlier output. Meanwhile
// no subscriber receives anything, so that each byte arrives once.
func (l *Log) SubscribeFromStart(a *Broadcaster, s *Subscriber) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := ErrEnded // the log is closed: no stream is open
	if !a.isDone() {
		err = l.replay(s.write)
	}
	if err != nil {
		s.close()
		return err
	}
	a.Subscribe(s)
	return nil
}

// replay passes what was written so far to emit, in its original form: the content of the file, and what is
// still in the pipes and was already passed to OnData. The caller holds mu.
func (l *Log) replay(emit func(stream string, b []byte)) error {
	again := &replayer{emit: emit, pending: map[string][]byte{}}
	if err := crilog.Read(l.config.Dir, l.config.attempt, crilog.All, again); err != nil {
		return fmt.Errorf("show what was written before: %w", err)
	}
	for _, s := range l.Streams {
		if s.delivered == 0 || s.Ended {
			continue
		}
		raw, err := s.Pipe.SyscallConn()
		if err != nil {
			return fmt.Errorf("show what was written before: %w", err)
		}
		var failed error
		err = raw.Control(func(fd uintptr) {
			var b []byte
			b, failed = l.peek(fd)
			emit(s.Name, b[:min(s.delivered, len(b))])
			l.releaseBuffer()
		})
		if err = errors.Join(err, failed); err != nil {
			return fmt.Errorf("show what was written before: %w", err)
		}
	}
	return nil
}

// replayer is a crilog.Sink that turns entries back into the original output.
type replayer struct {
	emit    func(stream string, b []byte)
	pending map[string][]byte // not passed on yet, by stream
}

func (r *replayer) Entry(e crilog.Entry) error {
	b := append(r.pending[e.Stream], e.Text...)
	if !e.Partial {
		b = append(b, '\n')
	}
	if len(b) >= maxBatch {
		r.emit(e.Stream, b)
		b = b[:0]
	}
	r.pending[e.Stream] = b
	return nil
}

func (r *replayer) Flush() error {
	for stream, b := range r.pending {
		r.emit(stream, b)
	}
	clear(r.pending)
	return nil
}
