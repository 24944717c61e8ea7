package runner

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/pod"
)

// control serves the pod's control socket.
type control struct {
	engine *engine

	mu      sync.Mutex
	status  *pod.Status
	conns   map[*net.UnixConn]bool
	closing bool
	changed chan struct{} // closed and replaced at every new status
	ended   chan struct{} // closed after the last one
	clients sync.WaitGroup
	served  atomic.Int32  // clients that are being answered
	leaving atomic.Bool   // the pod is removed once it has ended
	paused  chan struct{} // serve has stopped accepting
	resumed chan struct{} // and may go on
}

func newControl(e *engine) *control {
	return &control{engine: e, conns: map[*net.UnixConn]bool{}, changed: make(chan struct{}), ended: make(chan struct{}), paused: make(chan struct{}), resumed: make(chan struct{})}
}

// publish makes a status known to everyone who watches.
func (c *control) publish(st *pod.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = st
	close(c.changed)
	c.changed = make(chan struct{})
}

// A client has to say what it wants, and to listen to the last that is said: a
// suspended one must not hold the pod.
const (
	requestTimeout = 10 * time.Second
	closeTimeout   = time.Second
)

// acceptPause is between two tries where there is no descriptor for a client.
const acceptPause = time.Second

// close tells every client that the pod has ended and waits until they know.
func (c *control) close(l net.Listener) {
	l.Close()
	c.mu.Lock()
	c.closing = true
	for conn := range c.conns {
		conn.SetDeadline(time.Now().Add(closeTimeout))
	}
	c.mu.Unlock()
	close(c.ended)
	c.clients.Wait()
}

// track and dismiss keep account of a client.
func (c *control) track(conn *net.UnixConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns[conn] = true
	limit := requestTimeout
	if c.closing {
		limit = closeTimeout
	}
	conn.SetDeadline(time.Now().Add(limit))
}

func (c *control) untrack(conn *net.UnixConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, conn)
	conn.Close()
}

// clearDeadline lets a client that has made its request take its time.
func (c *control) clearDeadline(conn *net.UnixConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closing {
		conn.SetDeadline(time.Time{})
	}
}

// pause keeps new clients waiting. It fails, without any effect, while there are
// clients.
func (c *control) pause(l *net.UnixListener) bool {
	l.SetDeadline(time.Unix(0, 1))
	<-c.paused
	if c.served.Load() > 0 {
		c.resume(l)
		return false
	}
	return true
}

// resume ends a pause.
func (c *control) resume(l *net.UnixListener) {
	l.SetDeadline(time.Time{})
	c.resumed <- struct{}{}
}

// serve answers clients until the listener is closed.
func (c *control) serve(l *net.UnixListener) {
	for {
		conn, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.paused <- struct{}{}
			<-c.resumed
			continue
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "accept on the control socket:", err)
			time.Sleep(acceptPause)
			continue
		}
		c.served.Add(1)
		c.track(conn)
		c.clients.Go(func() {
			defer c.served.Add(-1)
			defer c.untrack(conn)
			if err := c.handle(conn); err != nil {
				fmt.Fprintln(os.Stderr, "answer request:", err)
			}
		})
	}
}

func (c *control) handle(conn *net.UnixConn) error {
	if err := checkPeer(conn); err != nil {
		return err
	}
	req, files, err := wire.ReadRequest(conn)
	if err != nil {
		return err
	}
	c.clearDeadline(conn)
	if req == nil { // somebody only looked whether we serve
		return nil
	}
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	switch {
	case req.Verb == wire.Watch:
		return c.watch(conn)
	case req.Verb == wire.Stop && req.Stop != nil:
		ev := lifecycle.Event{Kind: lifecycle.StopAsked, GraceSeconds: req.Stop.GraceSeconds}
		if req.Stop.Shutdown {
			ev.Reason = pod.ReasonTerminated
		}
		if req.Stop.Remove {
			c.markLeaving()
		}
		c.engine.emit(ev)
		<-c.ended
		return nil
	case req.Verb == wire.Notify && req.Notify != nil:
		return c.setNotifyTarget(conn, req.Notify, files)
	case req.Verb == wire.Apply && req.Apply != nil:
		return c.apply(conn, req.Apply)
	case req.Verb == wire.Kill && req.Kill != nil:
		return c.kill(conn, req.Kill)
	case req.Verb == wire.Pause && req.Pause != nil:
		return c.pauseOrResume(conn, req.Pause)
	case req.Verb == wire.SetCondition && req.Condition != nil:
		return c.setCondition(conn, req.Condition)
	case req.Verb == wire.Changed && req.Changed != nil:
		c.engine.objectChanged(*req.Changed)
		return wire.WriteFrame(conn, wire.Frame{Applied: true})
	case req.Verb == wire.Connect && req.Connect != nil:
		return c.portForward(conn, req.Connect)
	case req.Verb == wire.Attach && req.Attach != nil:
		return c.attach(conn, req.Attach, files)
	case req.Verb == wire.Copy && req.Copy != nil:
		return c.copy(conn, req.Copy, files)
	case req.Verb == wire.Exec && req.Exec != nil:
		return c.exec(conn, req.Exec, files)
	}
	return wire.WriteFrame(conn, wire.Frame{Error: &wire.Error{Message: fmt.Sprintf("unknown request %q", req.Verb), Code: 125}})
}

// markLeaving records that the pod is to be removed, before anything is done: the pod's own processes
// finish it, whatever becomes of the client. Without room for the record the client does it.
func (c *control) markLeaving() {
	if err := c.engine.store.MarkRemoving(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	c.leaving.Store(true)
}

// checkPeer refuses everyone but the user whose pod it is: root of our user
// namespace, which is the user.
func checkPeer(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return fmt.Errorf("look at the peer: %w", err)
	}
	var cred *unix.Ucred
	cerr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err = errors.Join(cerr, err); err != nil {
		return fmt.Errorf("look at the peer: %w", err)
	}
	if cred.Uid != uint32(os.Geteuid()) {
		return fmt.Errorf("refuse a peer with uid %d", cred.Uid)
	}
	return nil
}

// watch sends the status now and at every change. A slow client misses
// intermediate ones, never the last.
func (c *control) watch(conn *net.UnixConn) error {
	gone := make(chan struct{})
	go func() { // nothing more is expected: a read ends when the client does
		defer close(gone)
		bufio.NewReader(conn).ReadByte()
	}()
	for {
		c.mu.Lock()
		st, changed := c.status, c.changed
		c.mu.Unlock()
		if st != nil {
			if err := wire.WriteFrame(conn, wire.Frame{Status: st}); err != nil {
				return nil // the client has gone
			}
		}
		select {
		case <-changed:
		case <-gone:
			return nil
		case <-c.ended:
			c.mu.Lock()
			last := c.status
			c.mu.Unlock()
			if last != st {
				return wire.WriteFrame(conn, wire.Frame{Status: last})
			}
			return nil
		}
	}
}

// setNotifyTarget takes a front's ends and answers with how the pod is.
func (c *control) setNotifyTarget(conn *net.UnixConn, req *wire.NotifyRequest, files []*os.File) error {
	if err := c.engine.notifier.Attach(req, files); err != nil {
		return wire.WriteFrame(conn, wire.Frame{Error: &wire.Error{Message: err.Error(), Code: 125}})
	}
	c.mu.Lock()
	st := c.status
	c.mu.Unlock()
	if st == nil { // it has only just begun
		st = &pod.Status{Version: pod.StatusVersion, Phase: pod.Pending}
	}
	return wire.WriteFrame(conn, wire.Frame{Status: st})
}
