package webui

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/podrun/podrun/internal/sleep"
)

const (
	maxTail       = 5000
	keptLines     = 2000                   // not sent to a page yet
	keptBytes     = 1 << 20                // of them
	batchInterval = 100 * time.Millisecond // between two messages of lines
)

// logs sends lines of logs to a page. If a log grows faster than the page reads, the page gets the
// latest lines and the number of missed ones.
func (s *Server) logs(out *stream, r *http.Request) {
	q := r.URL.Query()
	of := LogRequest{Namespace: q.Get("namespace"), Pod: q.Get("pod"), Container: q.Get("container"), Previous: q.Get("previous") != "", Tail: 1000}
	if n, err := strconv.Atoi(q.Get("tail")); err == nil && n >= 0 {
		of.Tail = min(n, maxTail)
	}
	ctx, cancel := context.WithCancel(r.Context())
	b := &backlog{wake: make(chan struct{}, 1)}
	var failed error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		failed = s.Source.Logs(ctx, of, b.add)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	beat := time.NewTicker(heartbeatInterval)
	defer beat.Stop()
	for {
		select {
		case <-b.wake:
			if out.send(b.take()) != nil || sleep.For(ctx, batchInterval) != nil {
				return
			}
		case <-ended:
			m := b.take()
			if m.End = true; failed != nil {
				m.Error = failed.Error()
			}
			out.send(m) // the last message; errors do not matter
			return
		case <-beat.C:
			if out.heartbeat() != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// logBatch is a message of log lines.
type logBatch struct {
	Lines   [][4]string `json:"lines"` // container, time, stream, text
	Skipped int         `json:"skipped,omitempty"`
	End     bool        `json:"end,omitempty"`
	Error   string      `json:"error,omitempty"`
}

// backlog is what a page has not been sent yet: the last lines, and the number of dropped ones.
type backlog struct {
	wake chan struct{}

	mu      sync.Mutex
	kept    [][4]string
	bytes   int
	skipped int
}

func (b *backlog) add(l Line) {
	b.mu.Lock()
	b.kept = append(b.kept, [4]string{l.Container, l.Time, l.Stream, l.Text})
	b.bytes += len(l.Text)
	for len(b.kept) > keptLines || b.bytes > keptBytes && len(b.kept) > 1 {
		b.bytes -= len(b.kept[0][3])
		b.kept = b.kept[1:]
		b.skipped++
	}
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default: // the last notification is still pending
	}
}

func (b *backlog) take() logBatch {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := logBatch{Lines: b.kept, Skipped: b.skipped}
	if m.Lines == nil {
		m.Lines = [][4]string{}
	}
	b.kept, b.bytes, b.skipped = nil, 0, 0
	return m
}
