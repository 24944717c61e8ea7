package runner

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// maxLogLine is where a longer line is split into partial ones (tag P), as CRI
// runtimes do.
const maxLogLine = 16 << 10

// logFile writes one instance's output in CRI format:
//
//	2026-01-02T15:04:05.999999999Z stdout F the line
//
// Tag P marks a line that goes on in the next record of its stream.
type logFile struct {
	mu    sync.Mutex
	file  *os.File
	lost  error // why lines are missing: the first write that failed
	wrote time.Time
	show  func(lines []byte) // copies whole lines elsewhere too

	streams []*stream
	wg      sync.WaitGroup
}

// stream is one of a container's outputs on its way to the file.
type stream struct {
	name string
	pipe *os.File // the end we read
	rest []byte   // of a line, when the copying was paused

	ended bool // there is nothing more to read; known when nobody copies
}

func openLog(path string, show func(lines []byte)) (*logFile, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make log directory: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return &logFile{file: f, show: show}, nil
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

// take copies a stream to the file until it ends or is paused.
func (l *logFile) take(s *stream) {
	l.streams = append(l.streams, s)
	l.wg.Go(func() { l.copy(s) })
}

// drain waits until every stream has ended and closes the file.
func (l *logFile) drain() {
	l.wg.Wait()
	for _, s := range l.streams {
		s.pipe.Close()
	}
	l.file.Close()
}

// pause stops the copying: what comes from now on stays in the pipes.
func (l *logFile) pause() {
	for _, s := range l.streams {
		s.pipe.SetReadDeadline(time.Unix(0, 1)) // a pipe that has ended is as good
	}
	l.wg.Wait()
}

// resume goes on where pause has stopped.
func (l *logFile) resume() {
	streams := l.streams
	l.streams = nil
	for _, s := range streams {
		s.pipe.SetReadDeadline(time.Time{})
		l.take(s)
	}
}

func (l *logFile) copy(s *stream) {
	buf := make([]byte, 0, maxLogLine)
	buf = append(buf, s.rest...)
	s.rest = nil
	var out, shown bytes.Buffer
	for {
		n, err := s.pipe.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		out.Reset()
		shown.Reset()
		rest := buf
		for {
			line, after, found := bytes.Cut(rest, []byte{'\n'})
			if !found {
				break
			}
			record(&out, s.name, 'F', line)
			shown.Write(line)
			shown.WriteByte('\n')
			rest = after
		}
		paused := errors.Is(err, os.ErrDeadlineExceeded)
		if len(rest) == cap(buf) || (err != nil && !paused && len(rest) > 0) {
			record(&out, s.name, 'P', rest)
			shown.Write(rest)
			shown.WriteByte('\n')
			rest = nil
		}
		buf = buf[:copy(buf[:cap(buf)], rest)]
		l.write(out.Bytes())
		l.show(shown.Bytes())
		if paused {
			s.rest = buf
		}
		if err != nil {
			s.ended = !paused
			return
		}
	}
}

func record(out *bytes.Buffer, stream string, tag byte, line []byte) {
	out.Write(time.Now().UTC().AppendFormat(out.AvailableBuffer(), "2006-01-02T15:04:05.000000000Z07:00"))
	out.WriteByte(' ')
	out.WriteString(stream)
	out.Write([]byte{' ', tag, ' '})
	out.Write(line)
	out.WriteByte('\n')
}

// write appends whole records. A full disk loses log lines, never the container:
// its pipe is emptied all the same.
func (l *logFile) write(b []byte) {
	if len(b) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrote = time.Now()
	if _, err := l.file.Write(b); err != nil && l.lost == nil {
		l.lost = err
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
