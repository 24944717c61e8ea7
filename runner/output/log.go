package output

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
)

// maxLine is the size of the partial entries (tag P) into which a longer line is split, as by CRI runtimes.
const maxLine = 16 << 10

// LogConfig describes the location and limits of an instance's log.
type LogConfig struct {
	Dir      string // the directory of the logs of all instances of the container
	attempt  int
	Limits   crilog.Limits
	inFlight string // a small file in memory: see type inFlight
}

// limits returns the Plan's limits, or the kubelet's defaults.
func limits(plan *pod.Plan) crilog.Limits {
	return crilog.Limits{
		MaxBytes: cmp.Or(plan.LogMaxBytes, pod.DefaultLogMaxBytes),
		MaxFiles: cmp.Or(plan.LogMaxFiles, pod.DefaultLogMaxFiles),
	}
}

// Log writes one instance's output in CRI format: see crilog.
//
// A container's output stays in its pipe until it is in the file. So a supervisor that is killed loses nothing.
// The next supervisor gets the pipes from pod init, and continues at the same place: see inFlight.
type Log struct {
	config    LogConfig
	mu        sync.Mutex
	file      *crilog.Writer
	inFlight  *inFlight
	peekPipe  [2]int // receives a copy (tee) of a stream's content
	buf       *peekBuffer
	lossErr   error // the error of the first failed write: why lines are missing
	lastWrite time.Time
	lastTime  int64              // time of the last entry in ns: each batch has another time
	onLines   func(lines []byte) // receives a copy of whole lines
	onLoss    func()             // is called when the first line is lost; may be nil
	onMissing func(int64, error) // is called with the number of lost lines; may be nil

	OnData      func(stream string, b []byte) // is called with the output as it is read; may be nil
	LineTimeout time.Duration                 // how long the rest of a line may take to come

	suspended bool // streams are not to be read
	noWriters bool // all processes that could write have exited
	Streams   []*Stream
	wg        sync.WaitGroup
}

// Stream is one of a container's outputs on its way to the file.
type Stream struct {
	Name string
	Pipe *os.File // the read end
	Rest []byte   // the beginning of a line that is in the file, but not passed to onLines yet

	batching batching
	delay    time.Duration // how long the copier waits before it reads the stream again

	delivered    int       // how much of the pipe's content was passed to OnData
	lineDeadline time.Time // the rest of a line may come until then; zero: no line has begun
	Ended        bool      // end of file was reached; the copier writes the field, others read it only while nothing copies
	remaining    int       // how much is still to be read after the writers are gone: see WritersGone
}

// OpenLog opens the log of an instance to append to it. show gets the lines of each write.
func OpenLog(config LogConfig, show func(lines []byte)) (*Log, error) {
	l := &Log{config: config, onLines: show, LineTimeout: lineTimeout}
	var err error
	if l.file, err = crilog.OpenWriter(config.Dir, config.attempt, config.Limits); err != nil {
		return nil, err
	}
	if l.inFlight, err = openInFlight(config.inFlight, config.attempt); err != nil {
		l.file.Close()
		return nil, err
	}
	if err := unix.Pipe2(l.peekPipe[:], unix.O_CLOEXEC); err != nil {
		l.file.Close()
		l.inFlight.close()
		return nil, fmt.Errorf("make pipe for the log: %w", err)
	}
	// If removal fails, logs of earlier instances only take up disk space.
	if err := crilog.Prune(config.Dir, config.attempt); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return l, nil
}

// Pipe returns the write end of a new stream of the container. What is written to it is copied to the file. Drain
// waits until it is closed.
func (l *Log) Pipe(name string) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make %s pipe: %w", name, err)
	}
	l.AddStream(&Stream{Name: name, Pipe: r})
	return w, nil
}

// Recover continues with the streams of a previous supervisor. It first completes the batch that was in
// flight.
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

// AddStream copies a stream to the file until it ends or is suspended.
func (l *Log) AddStream(s *Stream) {
	l.Streams = append(l.Streams, s)
	l.wg.Go(func() { l.copy(s) })
}

// WritersGone limits the copies to what is in the pipes now. It is called when the container's processes have
// exited. Otherwise Drain could wait for ever: a process may have sent the write end of a pipe to another
// container.
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
			s.Pipe.SetReadDeadline(time.Unix(0, 1)) // interrupts a waiting read
		}
	}
}

// Drain waits until every stream has ended and closes the file.
func (l *Log) Drain() {
	l.wg.Wait()
	for _, s := range l.Streams {
		s.Pipe.Close()
	}
	l.reportMissing()
	l.file.Close()
	l.inFlight.close()
	unix.Close(l.peekPipe[0])
	unix.Close(l.peekPipe[1])
}

// Suspend stops the copying: later output stays in the pipes.
func (l *Log) Suspend() {
	l.mu.Lock()
	l.suspended = true
	for _, s := range l.Streams {
		s.Pipe.SetReadDeadline(time.Unix(0, 1)) // a pipe at end of file is fine
	}
	l.mu.Unlock()
	l.wg.Wait()
	for _, s := range l.Streams {
		if raw, err := s.Pipe.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { s.setPipeSize(fd, s.batching.narrow()) })
		}
	}
}

// Continue continues where Suspend has stopped.
func (l *Log) Continue() {
	l.mu.Lock()
	l.suspended = false
	l.mu.Unlock()
	streams := l.Streams
	l.Streams = nil
	for _, s := range streams {
		s.Pipe.SetReadDeadline(time.Time{})
		l.AddStream(s)
	}
}

// write appends whole entries. A full disk loses log lines but never blocks the container: its pipe is
// emptied all the same. The caller holds mu.
func (l *Log) write(b []byte) {
	l.lastWrite = time.Now()
	n, err := l.file.Write(b)
	if err == nil {
		return
	}
	missing := int64(bytes.Count(b[n:], []byte{'\n'}))
	if n > 0 && b[n-1] != '\n' {
		missing-- // the file's writer completes this entry
	}
	l.inFlight.set(inFlightMissing, l.inFlight.get(inFlightMissing)+missing)
	if l.lossErr == nil {
		l.lossErr = err
		if l.onLoss != nil {
			go l.onLoss()
		}
	}
}

// markMissing writes to the log how many lines are missing, if there is room again. It reports whether it did. The
// caller holds mu, and no batch is in flight.
func (l *Log) markMissing(stream string) (lines int64, marked bool) {
	if lines = l.inFlight.get(inFlightMissing); lines == 0 {
		return 0, false
	}
	l.lastTime = max(time.Now().UnixNano(), l.lastTime+1)
	text := fmt.Sprintf("podrun: %d lines are missing here, which could not be written", lines)
	n, _ := l.file.Write(crilog.Append(nil, crilog.FormatTime(time.Unix(0, l.lastTime)), stream, false, []byte(text)))
	if n == 0 {
		return lines, false
	}
	l.inFlight.set(inFlightMissing, 0)
	return lines, true
}

// reportMissing reports the missing lines of a log that gets no more output.
func (l *Log) reportMissing() {
	l.mu.Lock()
	lines, _ := l.markMissing("stdout")
	l.inFlight.set(inFlightMissing, 0)
	notify, lossErr := l.onMissing, l.lossErr
	l.mu.Unlock()
	if lines > 0 && notify != nil {
		notify(lines, lossErr)
	}
}

// NotifyMissing calls notify with the number of lines that are missing, when there is room again or the container has
// ended. The error is nil if an earlier supervisor has met it.
func (l *Log) NotifyMissing(notify func(lines int64, err error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.onMissing = notify
}

// NotifyLoss calls notify once lines are lost, or at once if some are lost already.
func (l *Log) NotifyLoss(notify func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.onLoss = notify; l.lossErr != nil {
		go notify()
	}
}

// LossWarning returns a warning about missing lines of a container's log, or "".
func (l *Log) LossWarning(container string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lossErr == nil {
		return ""
	}
	return fmt.Sprintf("output of container %s was lost: %v", container, l.lossErr)
}

// buffered returns the number of bytes in a pipe.
func buffered(fd uintptr) (int, error) { return unix.IoctlGetInt(int(fd), unix.TIOCINQ) }

// WroteWithin reports whether something was logged within the last d.
func (l *Log) WroteWithin(d time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.lastWrite) < d
}

// NewLogConfig returns the LogConfig of an instance, with the pod's size limits.
func NewLogConfig(config store.Pod, plan *pod.Plan, container string, attempt int) LogConfig {
	return LogConfig{
		Dir: config.LogDir(container), attempt: attempt, Limits: limits(plan),
		inFlight: filepath.Join(config.RuntimeDir(), "log-"+container),
	}
}

// Limits of the log tail that replaces a termination message: kubelet
// MaxContainerTerminationMessageLogLength and …LogLines.
const (
	maxTailBytes = 2048
	maxTailLines = 80
)

// Tail returns the text of the last lines of an instance's log, without unreadable entries.
func Tail(dir string, attempt int) string {
	var end tailSink
	if err := crilog.Read(dir, attempt, crilog.Selection{Tail: maxTailLines}, &end); err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(end), "")
}

// tailSink is a crilog.Sink that keeps the end of what it receives.
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
