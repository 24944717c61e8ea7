package clitest

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	gocmpcmp "github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
)

// commandLine runs podrun: cli.Run, which TestMain sets.
var commandLine func(*cmdutil.Env, []string) int

// Run runs a command line to its end.
func (h *Host) Run(args ...string) Result { return h.Begin("", args...).Wait() }

// Begin starts a command line; stdin is text.
func (h *Host) Begin(stdin string, args ...string) *Process {
	return h.BeginWith(strings.NewReader(stdin), nil, args...)
}

// BeginWith starts a command line with these streams; if stdout is nil, Process.Out gets the output.
func (h *Host) BeginWith(stdin io.Reader, stdout io.Writer, args ...string) *Process {
	p := &Process{t: h.T, Signals: make(chan os.Signal, 8), code: make(chan int, 1)}
	out := io.Writer(&p.Out)
	if stdout != nil {
		out = stdout
	}
	env := &cmdutil.Env{
		Getenv: func(key string) string { return h.Env[key] },
		In:     stdin, Out: out, ErrOut: &p.Err, Deps: h,
		Signals: func(sigs ...os.Signal) (<-chan os.Signal, func()) {
			if sigs[0] == syscall.SIGWINCH {
				return podclient.Signals(sigs...)
			}
			return p.Signals, func() {}
		},
		WaitHintAfter: cmp.Or(h.WaitHintAfter, time.Hour), GoneTime: cmp.Or(h.GoneTime, podclient.GoneTime),
		PullBackOff: h.backOff,
	}
	go func() { p.code <- commandLine(env, append([]string{"podrun"}, args...)) }()
	return p
}

// Process is a running command.
type Process struct {
	t        *testing.T
	Out, Err Buffer
	Signals  chan os.Signal
	code     chan int
}

// Result is the result of a command.
type Result struct {
	Code     int
	Out, Err string
}

// Wait returns the result of the command, or fails the test after Timeout.
func (p *Process) Wait() Result {
	p.t.Helper()
	select {
	case code := <-p.code:
		return Result{code, p.Out.String(), p.Err.String()}
	case <-time.After(Timeout):
		p.t.Fatalf("the command did not end\nstdout: %s\nstderr: %s", p.Out.String(), p.Err.String())
		return Result{}
	}
}

// WaitOutput waits until the command has written text to stdout or stderr.
func (p *Process) WaitOutput(text string) {
	p.t.Helper()
	Eventually(p.t, "the output has "+text, func() bool {
		return strings.Contains(p.Out.String(), text) || strings.Contains(p.Err.String(), text)
	})
}

// Eventually polls until ok returns true, for conditions without a notification, or fails the test.
func Eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(Timeout)
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

// Buffer is a bytes.Buffer for several goroutines.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Interrupt sends SIGINT to a command that runs until then, and checks its exit code.
func (p *Process) Interrupt() {
	p.t.Helper()
	p.Signals <- os.Interrupt
	if got := p.Wait(); got.Code != 130 {
		p.t.Errorf("after Ctrl-C: %+v", got)
	}
}

// OneSpace replaces each run of spaces, whose length depends on the other rows of a table, by two spaces.
func OneSpace(text string) string { return regexp.MustCompile(` {2,}`).ReplaceAllString(text, "  ") }

// OpenTerminal opens a pseudo-terminal: the user's end, and the command's.
func OpenTerminal(t *testing.T) (user, terminal *os.File) {
	t.Helper()
	user, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { user.Close(); terminal.Close() })
	return user, terminal
}

// WaitFor waits until out has text.
func WaitFor(t *testing.T, out *Buffer, text string) {
	t.Helper()
	Eventually(t, "the terminal shows "+text, func() bool { return strings.Contains(out.String(), text) })
}

// CheckResult compares a result with what is wanted.
func CheckResult(t *testing.T, got Result, code int, out, err string) {
	t.Helper()
	if d := gocmpcmp.Diff(Result{code, out, err}, got, gocmpcmp.AllowUnexported(Result{})); d != "" {
		t.Error(d)
	}
}
