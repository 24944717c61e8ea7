package output

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// maxLine is where a longer line is split into partial ones (tag P), as CRI
// runtimes do.
const maxLine = 16 << 10

// LogConfig is where an instance's log is.
type LogConfig struct {
	Dir      string // of the logs of all instances of the container
	attempt  int
	Limits   crilog.Limits
	inFlight string // a small file in memory: see flight
}

// limits are a plan's, or the kubelet's defaults.
func limits(plan *pod.Plan) crilog.Limits {
	return crilog.Limits{
		MaxBytes: cmp.Or(plan.LogMaxBytes, pod.DefaultLogMaxBytes),
		MaxFiles: cmp.Or(plan.LogMaxFiles, pod.DefaultLogMaxFiles),
	}
}

// Log writes one instance's output in CRI format: see crilog.
//
// What a container wrote stays in its pipe until it is in the file. So a supervisor
// that is killed loses nothing, and its successor, which gets the pipes, goes on
// where it was: see flight.
type Log struct {
	config    LogConfig
	mu        sync.Mutex
	file      *crilog.Writer
	inFlight  *inFlight
	peekPipe  [2]int // a pipe that takes a copy of what is in a stream's
	buf       *peekBuffer
	lossErr   error // why lines are missing: the first write that failed
	lastWrite time.Time
	lastTime  int64              // the time of the last entry in ns: no two batches have the same
	onLines   func(lines []byte) // copies whole lines elsewhere too
	onLoss    func()             // is called when lost is set; nil: nobody

	OnData      func(stream string, b []byte) // is called with what is written, as it comes; nil: nobody
	LineTimeout time.Duration                 // how long the rest of a line may take to come

	pausing   bool // streams are to be left alone
	noWriters bool // whoever wrote is gone
	Streams   []*Stream
	wg        sync.WaitGroup
}

// Stream is one of a container's outputs on its way to the file.
type Stream struct {
	Name string
	Pipe *os.File // the end we read
	Rest []byte   // what is in the file and is still to be shown, once its line is whole

	batching batching
	delay    time.Duration // for how long it is left alone now

	delivered    int       // how much of what is in the pipe was passed to hear
	lineDeadline time.Time // until then the rest of a line may come; zero: no line has begun
	Ended        bool      // there is nothing more to read; known when nobody copies
	remaining    int       // how much is still to be read, once its writers are gone: see finish
}

// OpenLog opens the log of an instance to append to it. show gets the lines of each write.
func OpenLog(at LogConfig, show func(lines []byte)) (*Log, error) {
	l := &Log{config: at, onLines: show, LineTimeout: lineTimeout}
	var err error
	if l.file, err = crilog.OpenWriter(at.Dir, at.attempt, at.Limits); err != nil {
		return nil, err
	}
	if l.inFlight, err = openInFlight(at.inFlight, at.attempt); err != nil {
		l.file.Close()
		return nil, err
	}
	if err := unix.Pipe2(l.peekPipe[:], unix.O_CLOEXEC); err != nil {
		l.file.Close()
		l.inFlight.close()
		return nil, fmt.Errorf("make pipe for the log: %w", err)
	}
	// Logs of earlier instances that stay cost room only.
	if err := crilog.Prune(at.Dir, at.attempt); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return l, nil
}

// Pipe returns the write end for a stream of the container. What is written there
// reaches the file; drain waits for its end.
func (l *Log) Pipe(name string) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make %s pipe: %w", name, err)
	}
	l.AddStream(&Stream{Name: name, Pipe: r})
	return w, nil
}

// Recover goes on with the streams of a supervisor that is gone: what it was about to
// write when it ended is written now.
func (l *Log) Recover(streams ...*Stream) error {
	if err := l.recoverInFlight(streams); err != nil {
		return err
	}
	for _, s := range streams {
		s.readPipeSize()
		l.AddStream(s)
	}
	return nil
}

// AddStream copies a stream to the file until it ends or is paused.
func (l *Log) AddStream(s *Stream) {
	l.Streams = append(l.Streams, s)
	l.wg.Go(func() { l.copy(s) })
}

// WritersGone is for when the container's processes are gone: what is in the pipes is all. One
// of them may have sent its end to another container, which would hold the pipe for ever.
func (l *Log) WritersGone() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noWriters = true
	for _, s := range l.Streams {
		raw, err := s.Pipe.SyscallConn()
		if err == nil {
			err = raw.Control(func(fd uintptr) { s.remaining, _ = buffered(fd) })
		}
		if err == nil {
			s.Pipe.SetReadDeadline(time.Unix(0, 1)) // wakes who waits for more
		}
	}
}

// Drain waits until every stream has ended and closes the file.
func (l *Log) Drain() {
	l.wg.Wait()
	for _, s := range l.Streams {
		s.Pipe.Close()
	}
	l.file.Close()
	l.inFlight.close()
	unix.Close(l.peekPipe[0])
	unix.Close(l.peekPipe[1])
}

// Pause stops the copying: what comes from now on stays in the pipes.
func (l *Log) Pause() {
	l.mu.Lock()
	l.pausing = true
	for _, s := range l.Streams {
		s.Pipe.SetReadDeadline(time.Unix(0, 1)) // a pipe that has ended is as good
	}
	l.mu.Unlock()
	l.wg.Wait()
	for _, s := range l.Streams {
		if raw, err := s.Pipe.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { s.setPipeSize(fd, s.batching.narrow()) })
		}
	}
}

// Resume goes on where pause has stopped.
func (l *Log) Resume() {
	l.mu.Lock()
	l.pausing = false
	l.mu.Unlock()
	streams := l.Streams
	l.Streams = nil
	for _, s := range streams {
		s.Pipe.SetReadDeadline(time.Time{})
		l.AddStream(s)
	}
}

// write appends whole entries. A full disk loses log lines, never the container: its
// pipe is emptied all the same. The caller holds mu.
func (l *Log) write(b []byte) {
	l.lastWrite = time.Now()
	if _, err := l.file.Write(b); err != nil && l.lossErr == nil {
		l.lossErr = err
		if l.onLoss != nil {
			go l.onLoss()
		}
	}
}

// NotifyLoss has tell called once lines are lost, or if some are already.
func (l *Log) NotifyLoss(tell func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.onLoss = tell; l.lossErr != nil {
		go tell()
	}
}

// LossWarning says what is missing from a container's log, or "".
func (l *Log) LossWarning(container string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lossErr == nil {
		return ""
	}
	return fmt.Sprintf("output of container %s was lost: %v", container, l.lossErr)
}

// buffered is how much is in a pipe.
func buffered(fd uintptr) (int, error) { return unix.IoctlGetInt(int(fd), unix.TIOCINQ) }

// WroteWithin says whether something was logged within a time.
func (l *Log) WroteWithin(d time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.lastWrite) < d
}

// NewLogConfig is where the log of an instance is, with the pod's limits of its size.
func NewLogConfig(at store.Pod, plan *pod.Plan, container string, attempt int) LogConfig {
	return LogConfig{
		Dir: at.LogDir(container), attempt: attempt, Limits: limits(plan),
		inFlight: filepath.Join(at.RuntimeDir(), "log-"+container),
	}
}

// The end of a log that stands in for a termination message: kubelet
// MaxContainerTerminationMessageLogLength and …LogLines.
const (
	maxTailBytes = 2048
	maxTailLines = 80
)

// Tail is the text of the last lines of an instance's log, without what cannot be
// read.
func Tail(dir string, attempt int) string {
	var end tailSink
	if err := crilog.Read(dir, attempt, crilog.Selection{Tail: maxTailLines}, &end); err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(end), "")
}

// tailSink is a crilog.Sink that keeps the end of what it gets.
type tailSink []byte

func (l *tailSink) Entry(e crilog.Entry) error {
	b := append(*l, e.Text...)
	if !e.Partial {
		b = append(b, '\n')
	}
	*l = append((*l)[:0], b[max(0, len(b)-maxTailBytes):]...)
	return nil
}

func (l *tailSink) Flush() error { return nil }
