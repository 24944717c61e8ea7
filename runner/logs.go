package runner

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// maxLogLine is where a longer line is split into partial ones (tag P), as CRI
// runtimes do.
const maxLogLine = 16 << 10

// logPlace is where an instance's log is.
type logPlace struct {
	dir     string // of the logs of all instances of the container
	attempt int
	limits  crilog.Limits
	flight  string // a small file in memory: see flight
}

// logLimits are a plan's, or the kubelet's defaults.
func logLimits(plan *pod.Plan) crilog.Limits {
	return crilog.Limits{
		MaxBytes: cmp.Or(plan.LogMaxBytes, pod.DefaultLogMaxBytes),
		MaxFiles: cmp.Or(plan.LogMaxFiles, pod.DefaultLogMaxFiles),
	}
}

// logFile writes one instance's output in CRI format: see crilog.
//
// What a container wrote stays in its pipe until it is in the file. So a supervisor
// that is killed loses nothing, and its successor, which gets the pipes, goes on
// where it was: see flight.
type logFile struct {
	place  logPlace
	mu     sync.Mutex
	file   *crilog.Writer
	flight *flight
	peek   [2]int // a pipe that takes a copy of what is in a stream's
	held   *passing
	lost   error // why lines are missing: the first write that failed
	wrote  time.Time
	last   int64              // the time of the last entry in ns: no two batches have the same
	show   func(lines []byte) // copies whole lines elsewhere too
	onLoss func()             // is called when lost is set; nil: nobody

	hear     func(stream string, b []byte) // is called with what is written, as it comes; nil: nobody
	patience time.Duration                 // how long the rest of a line may take to come

	pausing bool // streams are to be left alone
	gone    bool // whoever wrote is gone
	streams []*stream
	wg      sync.WaitGroup
}

// stream is one of a container's outputs on its way to the file.
type stream struct {
	name string
	pipe *os.File // the end we read
	rest []byte   // what is in the file and is still to be shown, once its line is whole

	gathering gathering
	alone     time.Duration // for how long it is left alone now

	heard   int       // how much of what is in the pipe was passed to hear
	waiting time.Time // until then the rest of a line may come; zero: no line has begun
	ended   bool      // there is nothing more to read; known when nobody copies
	last    int       // how much is still to be read, once its writers are gone: see finish
}

func openLog(at logPlace, show func(lines []byte)) (*logFile, error) {
	l := &logFile{place: at, show: show, patience: lineWait}
	var err error
	if l.file, err = crilog.OpenWriter(at.dir, at.attempt, at.limits); err != nil {
		return nil, err
	}
	if l.flight, err = openFlight(at.flight, at.attempt); err != nil {
		l.file.Close()
		return nil, err
	}
	if err := unix.Pipe2(l.peek[:], unix.O_CLOEXEC); err != nil {
		l.file.Close()
		l.flight.close()
		return nil, fmt.Errorf("make pipe for the log: %w", err)
	}
	// Logs of earlier instances that stay cost room only.
	if err := crilog.Prune(at.dir, at.attempt); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return l, nil
}

// pipe returns the write end for a stream of the container. What is written there
// reaches the file; drain waits for its end.
func (l *logFile) pipe(name string) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make %s pipe: %w", name, err)
	}
	l.take(&stream{name: name, pipe: r})
	return w, nil
}

// takeUp goes on with the streams of a supervisor that is gone: what it was about to
// write when it ended is written now.
func (l *logFile) takeUp(streams ...*stream) error {
	if err := l.settle(streams); err != nil {
		return err
	}
	for _, s := range streams {
		s.measure()
		l.take(s)
	}
	return nil
}

// take copies a stream to the file until it ends or is paused.
func (l *logFile) take(s *stream) {
	l.streams = append(l.streams, s)
	l.wg.Go(func() { l.copy(s) })
}

// finish is for when the container's processes are gone: what is in the pipes is all. One
// of them may have sent its end to another container, which would hold the pipe for ever.
func (l *logFile) finish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = true
	for _, s := range l.streams {
		raw, err := s.pipe.SyscallConn()
		if err == nil {
			err = raw.Control(func(fd uintptr) { s.last, _ = available(fd) })
		}
		if err == nil {
			s.pipe.SetReadDeadline(time.Unix(0, 1)) // wakes who waits for more
		}
	}
}

// drain waits until every stream has ended and closes the file.
func (l *logFile) drain() {
	l.wg.Wait()
	for _, s := range l.streams {
		s.pipe.Close()
	}
	l.file.Close()
	l.flight.close()
	unix.Close(l.peek[0])
	unix.Close(l.peek[1])
}

// pause stops the copying: what comes from now on stays in the pipes.
func (l *logFile) pause() {
	l.mu.Lock()
	l.pausing = true
	for _, s := range l.streams {
		s.pipe.SetReadDeadline(time.Unix(0, 1)) // a pipe that has ended is as good
	}
	l.mu.Unlock()
	l.wg.Wait()
	for _, s := range l.streams {
		if raw, err := s.pipe.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { s.hold(fd, s.gathering.narrow()) })
		}
	}
}

// resume goes on where pause has stopped.
func (l *logFile) resume() {
	l.mu.Lock()
	l.pausing = false
	l.mu.Unlock()
	streams := l.streams
	l.streams = nil
	for _, s := range streams {
		s.pipe.SetReadDeadline(time.Time{})
		l.take(s)
	}
}

// write appends whole entries. A full disk loses log lines, never the container: its
// pipe is emptied all the same. The caller holds mu.
func (l *logFile) write(b []byte) {
	l.wrote = time.Now()
	if _, err := l.file.Write(b); err != nil && l.lost == nil {
		l.lost = err
		if l.onLoss != nil {
			go l.onLoss()
		}
	}
}

// tellLoss has tell called once lines are lost, or if some are already.
func (l *logFile) tellLoss(tell func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.onLoss = tell; l.lost != nil {
		go tell()
	}
}

// warning says what is missing from a container's log, or "".
func (l *logFile) warning(container string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == nil {
		return ""
	}
	return fmt.Sprintf("output of container %s was lost: %v", container, l.lost)
}

// available is how much is in a pipe.
func available(fd uintptr) (int, error) { return unix.IoctlGetInt(int(fd), unix.TIOCINQ) }

// wroteSince says whether something was logged within a time.
func (l *logFile) wroteSince(d time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.wrote) < d
}

func placeLog(at store.Pod, plan *pod.Plan, container string, attempt int) logPlace {
	return logPlace{
		dir: at.LogDir(container), attempt: attempt, limits: logLimits(plan),
		flight: filepath.Join(at.RuntimeDir(), "log-"+container),
	}
}
