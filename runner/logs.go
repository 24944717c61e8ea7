package runner

import (
	"bytes"
	"fmt"
	"io"
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
	mu     sync.Mutex
	file   *os.File
	losing bool // the last write failed, and was told
	wg     sync.WaitGroup
}

func createLog(path string) (*logFile, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make log directory: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return &logFile{file: f}, nil
}

// pipe returns the write end for a stream of the container. What is written there
// reaches the file; drain waits for its end.
func (l *logFile) pipe(stream string) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make %s pipe: %w", stream, err)
	}
	l.wg.Go(func() {
		defer r.Close()
		l.copy(stream, r)
	})
	return w, nil
}

// drain waits until every stream has ended and closes the file.
func (l *logFile) drain() {
	l.wg.Wait()
	l.file.Close()
}

func (l *logFile) copy(stream string, r io.Reader) {
	buf := make([]byte, 0, maxLogLine)
	var out bytes.Buffer
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		out.Reset()
		rest := buf
		for {
			line, after, found := bytes.Cut(rest, []byte{'\n'})
			if !found {
				break
			}
			record(&out, stream, 'F', line)
			rest = after
		}
		if len(rest) == cap(buf) || (err != nil && len(rest) > 0) {
			record(&out, stream, 'P', rest)
			rest = nil
		}
		buf = buf[:copy(buf[:cap(buf)], rest)]
		l.write(out.Bytes())
		if err != nil {
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
	_, err := l.file.Write(b)
	if err != nil && !l.losing {
		fmt.Fprintf(os.Stderr, "write log %s: %v\n", l.file.Name(), err)
	}
	l.losing = err != nil
}
