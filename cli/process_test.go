package cli

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/podclient"
)

// run runs a command line to its end.
func (w *world) run(args ...string) result { return w.begin("", args...).wait() }

// begin starts a command line; stdin is text.
func (w *world) begin(stdin string, args ...string) *process {
	return w.beginWith(strings.NewReader(stdin), nil, args...)
}

func (w *world) beginWith(stdin io.Reader, stdout io.Writer, args ...string) *process {
	p := &process{t: w.t, signals: make(chan os.Signal, 8), code: make(chan int, 1)}
	out := io.Writer(&p.out)
	if stdout != nil {
		out = stdout
	}
	f := &cmdutil.Env{
		Getenv: func(key string) string { return w.env[key] },
		In:     stdin, Out: out, ErrOut: &p.err, Deps: w,
		Signals: func(sigs ...os.Signal) (<-chan os.Signal, func()) {
			if sigs[0] == syscall.SIGWINCH {
				return podclient.Signals(sigs...)
			}
			return p.signals, func() {}
		},
		WaitHintAfter: cmp.Or(w.still, time.Hour),
		PullBackOff:   w.backOff,
	}
	go func() { p.code <- run(f, append([]string{"podrun"}, args...)) }()
	return p
}

// process is a command that runs.
type process struct {
	t        *testing.T
	out, err buffer
	signals  chan os.Signal
	code     chan int
}

type result struct {
	code     int
	out, err string
}

func (p *process) wait() result {
	p.t.Helper()
	select {
	case code := <-p.code:
		return result{code, p.out.String(), p.err.String()}
	case <-time.After(bound):
		p.t.Fatalf("the command did not end\nstdout: %s\nstderr: %s", p.out.String(), p.err.String())
		return result{}
	}
}

// says waits until the command has written text to stdout or stderr.
func (p *process) says(text string) {
	p.t.Helper()
	eventually(p.t, "the output has "+text, func() bool {
		return strings.Contains(p.out.String(), text) || strings.Contains(p.err.String(), text)
	})
}

// eventually polls, since what is waited for is outside of this process's reach.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(bound)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never: %s", what)
		}
	}
}

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
