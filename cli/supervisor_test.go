package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/pod"
)

// supervisor is a fake one: it serves the control socket and holds the lock.
type supervisor struct {
	t        *testing.T
	pod      store.Pod
	plan     *pod.Plan
	lock     *os.File
	listener *net.UnixListener
	stops    chan *int64 // the graces of stop requests
	leaving  atomic.Bool // one of them was to remove the pod
	exec     func(*execClient)

	mu      sync.Mutex
	refuses string // what it says to another plan
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
			case wire.Apply:
				s.apply(conn, req.Apply)
			case wire.Stop:
				if req.Stop.Remove {
					s.leaving.Store(true)
				}
				s.stops <- req.Stop.GraceSeconds
				<-s.ended
			case wire.Exec:
				c := &execClient{conn: conn, req: req.Exec, files: files}
				s.mu.Lock()
				do := s.exec
				s.mu.Unlock()
				do(c)
				c.close()
			}
		}()
	}
}

// apply records the plan, as a real one does, and says so, or says s.refuses.
func (s *supervisor) apply(conn *net.UnixConn, req *wire.ApplyRequest) {
	s.mu.Lock()
	refuses := s.refuses
	s.mu.Unlock()
	var plan pod.Plan
	if err := json.Unmarshal(req.Plan, &plan); err != nil {
		s.t.Error(err)
	}
	frame := wire.Frame{Applied: true}
	if refuses != "" {
		frame = wire.Frame{Error: &wire.Error{Message: refuses, Code: 1}}
	} else if err := s.pod.Update(&plan, req.Manifest); err != nil {
		s.t.Error(err)
	}
	if err := wire.WriteFrame(conn, frame); err != nil {
		s.t.Error(err)
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
