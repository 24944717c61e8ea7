package clitest

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

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
)

// Supervisor is a fake supervisor: it serves the control socket and holds the lock.
type Supervisor struct {
	t               *testing.T
	Pod             store.Pod
	Plan            *pod.Plan
	lock            *os.File
	Listener        *net.UnixListener
	Stops           chan *int64 // grace periods of the stop requests
	RemoveRequested atomic.Bool // by one of the stop requests
	Exec            func(*ExecClient)

	Mu         sync.Mutex
	ApplyError string // answer to apply requests; "": they succeed
	status     *pod.Status
	changed    chan struct{}
	ended      chan struct{}
	endOnce    sync.Once
}

func (s *Supervisor) serve() {
	for {
		conn, err := s.Listener.AcceptUnix()
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
					s.RemoveRequested.Store(true)
				}
				s.Stops <- req.Stop.GraceSeconds
				<-s.ended
			case wire.Exec:
				c := &ExecClient{Conn: conn, Req: req.Exec, Files: files}
				s.Mu.Lock()
				do := s.Exec
				s.Mu.Unlock()
				do(c)
				c.Close()
			}
		}()
	}
}

// apply records the plan, as a real supervisor does, or answers with ApplyError.
func (s *Supervisor) apply(conn *net.UnixConn, req *wire.ApplyRequest) {
	s.Mu.Lock()
	applyError := s.ApplyError
	s.Mu.Unlock()
	var plan pod.Plan
	if err := json.Unmarshal(req.Plan, &plan); err != nil {
		s.t.Error(err)
	}
	frame := wire.Frame{Applied: true}
	if applyError != "" {
		frame = wire.Frame{Error: &wire.Error{Message: applyError, Code: 1}}
	} else if err := s.Pod.ReplacePlan(&plan, req.Manifest); err != nil {
		s.t.Error(err)
	}
	if err := wire.WriteFrame(conn, frame); err != nil {
		s.t.Error(err)
	}
}

func (s *Supervisor) watch(conn *net.UnixConn) {
	var last *pod.Status
	for {
		s.Mu.Lock()
		st, changed := s.status, s.changed
		s.Mu.Unlock()
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

// Publish writes a status to disk and sends it to watchers.
func (s *Supervisor) Publish(st pod.Status) {
	st.Version = pod.StatusVersion
	if err := s.Pod.WriteStatus(&st); err != nil {
		s.t.Error(err)
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.status = &st
	close(s.changed)
	s.changed = make(chan struct{})
}

// End publishes the last status and ends the supervisor.
func (s *Supervisor) End(st pod.Status) {
	s.Publish(st)
	s.Kill()
}

// Kill closes the socket and releases the lock without a status.
func (s *Supervisor) Kill() {
	s.endOnce.Do(func() {
		close(s.ended)
		s.Listener.Close()
		s.lock.Close()
	})
}

// Record writes what a pod init and its monitor record in the pod's lock.
func (s *Supervisor) Record(monitor int) {
	s.ClearRecord()
	if _, err := s.lock.WriteAt(fmt.Appendf(nil, "%d 1 %d 1\nserving\n", monitor+1, monitor), 0); err != nil {
		s.t.Error(err)
	}
}

// ClearRecord clears the record, as a command that locks the pod does.
func (s *Supervisor) ClearRecord() {
	if err := s.lock.Truncate(0); err != nil {
		s.t.Error(err)
	}
}

// Relock locks the pod after its removal, as a command that creates another pod of its name does.
func (s *Supervisor) Relock() {
	s.lock.Close()
	var err error
	if s.lock, err = s.Pod.Lock(); err != nil {
		s.t.Error(err)
	}
}

// KillAndKeepLock closes the socket. The pod's lock stays taken, as if another command had locked the pod since.
func (s *Supervisor) KillAndKeepLock() {
	s.endOnce.Do(func() {
		close(s.ended)
		s.Listener.Close()
		s.t.Cleanup(func() { s.lock.Close() })
	})
}

// Log writes lines of a container's log: "stdout F text".
func (s *Supervisor) Log(container string, attempt int, lines ...string) {
	file := s.Pod.LogFile(container, attempt)
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

// ExecClient is the client of an exec request.
type ExecClient struct {
	Conn  *net.UnixConn
	Req   *wire.ExecRequest
	Files []*os.File
}

// Started reports to the client that its command runs.
func (c *ExecClient) Started(master ...*os.File) {
	wire.WriteFrame(c.Conn, wire.Frame{Started: true}, master...)
}

// Exit sends the exit code to the client.
func (c *ExecClient) Exit(code int) { wire.WriteFrame(c.Conn, wire.Frame{Exit: &code}) }

// Fail sends an error to the client.
func (c *ExecClient) Fail(message string, code int) {
	wire.WriteFrame(c.Conn, wire.Frame{Error: &wire.Error{Message: message, Code: code}})
}

// WaitDisconnected waits until the client closes its connection.
func (c *ExecClient) WaitDisconnected() error {
	for {
		if _, err := wire.ReadControl(c.Conn); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// Close closes the files of the request.
func (c *ExecClient) Close() {
	for _, f := range c.Files {
		f.Close()
	}
}

// AddEvents adds events to log and writes it to the pod.
func (s *Supervisor) AddEvents(log *pod.EventLog, events ...pod.Event) {
	s.t.Helper()
	for _, e := range events {
		log.Add(e)
	}
	if err := s.Pod.WriteEvents(log); err != nil {
		s.t.Error(err)
	}
}
