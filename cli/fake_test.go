package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/pod"
)

// bound is how long anything may take in these tests.
const bound = 20 * time.Second

// world is a machine on which commands run: real directories, a fake image store
// and fake supervisors that serve real sockets.
type world struct {
	t        *testing.T
	env      map[string]string
	dirs     store.Dirs
	findings []host.Finding
	imageErr error
	script   func(*supervisor) // what a started pod does
	startErr error

	mu      sync.Mutex
	running map[string]*supervisor
}

func newWorld(t *testing.T) *world {
	t.Helper()
	base := t.TempDir()
	w := &world{t: t, running: map[string]*supervisor{}}
	w.env = map[string]string{"HOME": base, "XDG_DATA_HOME": base + "/data", "XDG_RUNTIME_DIR": base + "/run", "TERM": "xterm"}
	w.dirs = store.Dirs{Data: base + "/data/podrun", Runtime: base + "/run/podrun"}
	if os.Getuid() == 0 {
		// Root's directories are fixed: tests must not touch the machine's.
		t.Fatal("these tests run as an ordinary user: see TestMain")
	}
	t.Cleanup(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, s := range w.running {
			s.kill()
		}
	})
	return w
}

func (w *world) check() []host.Finding             { return w.findings }
func (w *world) images(store.Dirs) (images, error) { return w, nil }
func (w *world) pods(store.Dirs) (pods, error)     { return w, nil }
func (w *world) Hold() (io.Closer, error)          { return io.NopCloser(nil), nil }
func (w *world) remove(p store.Pod) error          { return p.Remove() }
func (w *world) supervisor(namespace, name string) *supervisor {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.running[namespace+"/"+name]
}

func (w *world) Ensure(_ context.Context, ref, _ string, _ image.PullOptions) (pod.Image, error) {
	return pod.Image{Name: ref, ID: "sha256:" + strings.Repeat("0", 64), Layers: []string{"/layer"}, Cmd: []string{"sh"}}, w.imageErr
}

func (w *world) start(p store.Pod, _ string, lock *os.File) error {
	if w.startErr != nil {
		return w.startErr
	}
	plan, err := p.Plan()
	if err != nil {
		return err
	}
	fd, err := unix.FcntlInt(lock.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return err
	}
	s := &supervisor{
		t: w.t, pod: p, plan: plan, lock: os.NewFile(uintptr(fd), "lock"),
		stops: make(chan *int64, 8), ended: make(chan struct{}), changed: make(chan struct{}),
		exec: func(c *execClient) { c.fail("no exec here", 125) },
	}
	if s.listener, err = p.Listen(); err != nil {
		return err
	}
	w.mu.Lock()
	w.running[p.Namespace+"/"+p.Name] = s
	w.mu.Unlock()
	go s.serve()
	if w.script != nil {
		go w.script(s)
	}
	return nil
}

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
	f := &front{
		getenv: func(key string) string { return w.env[key] },
		in:     stdin, out: out, err: &p.err, rooms: w,
		signals: func(sigs ...os.Signal) (<-chan os.Signal, func()) {
			if sigs[0] == syscall.SIGWINCH {
				return notify(sigs...)
			}
			return p.signals, func() {}
		},
	}
	go func() { p.code <- f.run(append([]string{"podrun"}, args...)) }()
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

// supervisor is a fake one: it serves the control socket and holds the lock.
type supervisor struct {
	t        *testing.T
	pod      store.Pod
	plan     *pod.Plan
	lock     *os.File
	listener *net.UnixListener
	stops    chan *int64 // the graces of stop requests
	exec     func(*execClient)

	mu      sync.Mutex
	status  *pod.Status
	changed chan struct{}
	ended   chan struct{}
	over    sync.Once
}

func (s *supervisor) serve() {
	for {
		conn, err := s.listener.AcceptUnix()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			req, files, err := wire.ReadRequest(conn)
			if err != nil || req == nil {
				return
			}
			switch req.Verb {
			case wire.Watch:
				s.watch(conn)
			case wire.Stop:
				s.stops <- req.Stop.GraceSeconds
				<-s.ended
			case wire.Exec:
				c := &execClient{conn: conn, req: req.Exec, files: files}
				s.exec(c)
				c.close()
			}
		}()
	}
}

func (s *supervisor) watch(conn *net.UnixConn) {
	var last *pod.Status
	for {
		s.mu.Lock()
		st, changed := s.status, s.changed
		s.mu.Unlock()
		if st != nil && st != last {
			last = st
			if wire.WriteFrame(conn, wire.Frame{Status: st}) != nil {
				return
			}
			continue
		}
		select {
		case <-changed:
		case <-s.ended:
			return
		}
	}
}

// publish makes a status known, on disk and to watchers.
func (s *supervisor) publish(st pod.Status) {
	st.Version = pod.StatusVersion
	if err := s.pod.WriteStatus(&st); err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = &st
	close(s.changed)
	s.changed = make(chan struct{})
}

// end is the orderly end of the pod, after its last status.
func (s *supervisor) end(st pod.Status) {
	s.publish(st)
	s.kill()
}

// kill ends the supervisor without a word.
func (s *supervisor) kill() {
	s.over.Do(func() {
		close(s.ended)
		s.listener.Close()
		s.lock.Close()
	})
}

// log writes lines of a container's log: "stdout F text".
func (s *supervisor) log(container string, attempt int, lines ...string) {
	file := s.pod.LogFile(container, attempt)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		s.t.Error(err)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		s.t.Error(err)
		return
	}
	defer f.Close()
	for _, l := range lines {
		fmt.Fprintf(f, "2026-01-02T03:04:05.000000006Z %s\n", l)
	}
}

// execClient is the client of an exec request.
type execClient struct {
	conn  *net.UnixConn
	req   *wire.ExecRequest
	files []*os.File
}

func (c *execClient) started(master ...*os.File) {
	wire.WriteFrame(c.conn, wire.Frame{Started: true}, master...)
}

func (c *execClient) exit(code int) { wire.WriteFrame(c.conn, wire.Frame{Exit: &code}) }

func (c *execClient) fail(message string, code int) {
	wire.WriteFrame(c.conn, wire.Frame{Error: &wire.Error{Message: message, Code: code}})
}

// gone waits until the client has left.
func (c *execClient) gone() error {
	for {
		if _, err := wire.ReadControl(c.conn); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

func (c *execClient) close() {
	for _, f := range c.files {
		f.Close()
	}
}
