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

	"golang.org/x/sync/singleflight"

	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/runner/container"
)

// control serves the pod's control socket.
type control struct {
	engine *engine

	mu       sync.Mutex
	status   *pod.Status
	conns    map[*net.UnixConn]bool
	closing  bool
	changed  chan struct{} // closed and replaced at every new status
	ended    chan struct{} // closed after the last status
	clients  sync.WaitGroup
	usage    singleflight.Group // counts what the pod uses of the disk
	served   atomic.Int32       // number of clients that are being served
	removing atomic.Bool        // the pod is removed once it has ended
	stopped  chan struct{}      // gets a value when serve has stopped accepting
	started  chan struct{}      // makes serve accept again
}

func newControl(e *engine) *control {
	return &control{engine: e, conns: map[*net.UnixConn]bool{}, changed: make(chan struct{}), ended: make(chan struct{}), stopped: make(chan struct{}), started: make(chan struct{})}
}

// publish sends a status to all clients that watch.
func (c *control) publish(st *pod.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = st
	close(c.changed)
	c.changed = make(chan struct{})
}

// Limits for a client: to send its request, and to receive the last frames. A suspended client must not
// block the pod.
const (
	requestTimeout = 10 * time.Second
	closeTimeout   = time.Second
)

// acceptPause is the time between two calls of accept when no descriptor is free.
const acceptPause = time.Second

// shutdown notifies every client that the pod has ended and waits until all have been served.
func (c *control) shutdown(l net.Listener) {
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

// track adds a client to the clients that shutdown waits for, and limits the time for its request.
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

// clearDeadline removes the time limit of a client whose request has been read.
func (c *control) clearDeadline(conn *net.UnixConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closing {
		conn.SetDeadline(time.Time{})
	}
}

// stopAccepting stops accepting clients; new clients wait in the backlog. While a client is being served it
// changes nothing and returns false.
func (c *control) stopAccepting(l *net.UnixListener) bool {
	l.SetDeadline(time.Unix(0, 1))
	<-c.stopped
	if c.served.Load() > 0 {
		c.startAccepting(l)
		return false
	}
	return true
}

// startAccepting accepts clients again.
func (c *control) startAccepting(l *net.UnixListener) {
	l.SetDeadline(time.Time{})
	c.started <- struct{}{}
}

// serve answers clients until the listener is closed.
func (c *control) serve(l *net.UnixListener) {
	for {
		conn, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.stopped <- struct{}{}
			<-c.started
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
	if req == nil { // the client only probed whether the socket is served
		return nil
	}
	defer container.CloseFiles(files...)
	serve := handlers[req.Verb]
	if serve == nil {
		serve = unknown
	}
	err = serve(c, conn, req, files)
	if refusal := (*wire.Error)(nil); errors.As(err, &refusal) {
		return wire.WriteFrame(conn, wire.Frame{Error: refusal})
	}
	return err
}

// A handler serves one request of a client. A wire.Error that it returns is sent to the client.
type handler func(c *control, conn *net.UnixConn, req *wire.Request, files []*os.File) error

var handlers = map[wire.Verb]handler{
	wire.Watch:        (*control).watch,
	wire.Stop:         with(func(r *wire.Request) *wire.StopRequest { return r.Stop }, (*control).stop),
	wire.Notify:       with(func(r *wire.Request) *wire.NotifyRequest { return r.Notify }, (*control).setNotifyTarget),
	wire.Apply:        with(func(r *wire.Request) *wire.ApplyRequest { return r.Apply }, (*control).apply),
	wire.Kill:         with(func(r *wire.Request) *wire.KillRequest { return r.Kill }, (*control).kill),
	wire.Pause:        with(func(r *wire.Request) *wire.PauseRequest { return r.Pause }, (*control).pauseOrUnpause),
	wire.SetCondition: with(func(r *wire.Request) *wire.ConditionRequest { return r.Condition }, (*control).setCondition),
	wire.Changed:      with(func(r *wire.Request) *wire.ChangedRequest { return r.Changed }, (*control).objectChanged),
	wire.DiskUsage:    (*control).diskUsage,
	wire.Connect:      with(func(r *wire.Request) *wire.ConnectRequest { return r.Connect }, (*control).portForward),
	wire.Attach:       with(func(r *wire.Request) *wire.AttachRequest { return r.Attach }, (*control).attach),
	wire.Copy:         with(func(r *wire.Request) *wire.CopyRequest { return r.Copy }, (*control).copy),
	wire.Exec:         with(func(r *wire.Request) *wire.ExecRequest { return r.Exec }, (*control).exec),
}

// with returns the handler of a verb that needs a part of the request.
func with[T any](part func(*wire.Request) *T, serve func(*control, *net.UnixConn, *T, []*os.File) error) handler {
	return func(c *control, conn *net.UnixConn, req *wire.Request, files []*os.File) error {
		if p := part(req); p != nil {
			return serve(c, conn, p, files)
		}
		return &wire.Error{Message: fmt.Sprintf("request %q lacks its parameters", req.Verb), Code: 125}
	}
}

func unknown(_ *control, _ *net.UnixConn, req *wire.Request, _ []*os.File) error {
	return &wire.Error{Message: fmt.Sprintf("unknown request %q", req.Verb), Code: 125}
}

// stop stops the pod and returns when it has ended.
func (c *control) stop(_ *net.UnixConn, req *wire.StopRequest, _ []*os.File) error {
	ev := lifecycle.Event{Kind: lifecycle.StopRequested, GraceSeconds: req.GraceSeconds}
	if req.Shutdown {
		ev.Reason = pod.ReasonTerminated
	}
	if req.Evicted != "" {
		ev.Reason, ev.Message = pod.ReasonEvicted, req.Evicted
	}
	if req.Remove {
		c.markRemoving()
	}
	c.engine.emit(ev)
	<-c.ended
	return nil
}

// diskUsage answers with what the pod uses of the disk. It waits for a count in progress: clients that give up and come
// again do not add to the load.
func (c *control) diskUsage(conn *net.UnixConn, _ *wire.Request, _ []*os.File) error {
	usage, err, _ := c.usage.Do("", func() (any, error) { return c.engine.diskUsage() })
	if err != nil {
		return &wire.Error{Message: err.Error(), Code: 125}
	}
	return wire.WriteFrame(conn, wire.Frame{DiskUsage: usage.(*wire.DiskUsageResult)})
}

// objectChanged has the engine read an object again that the pod uses. It returns an error if NetworkPolicies
// are not in effect.
func (c *control) objectChanged(conn *net.UnixConn, req *wire.ChangedRequest, _ []*os.File) error {
	if err := c.engine.objectChanged(*req); err != nil {
		return &wire.Error{Message: err.Error(), Code: 1}
	}
	return wire.WriteFrame(conn, wire.Frame{Applied: true})
}

// markRemoving records that the pod is to be removed, before anything is done. The pod's own processes then
// finish the removal even if the client ends. If the record cannot be written (disk full), the client
// removes the pod.
func (c *control) markRemoving() {
	if err := c.engine.pod.MarkRemoving(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	c.removing.Store(true)
}

// checkPeer returns an error unless the peer is the pod's user, which is root in this user namespace.
func checkPeer(conn *net.UnixConn) error {
	cred, err := wire.Peer(conn)
	if err != nil {
		return err
	}
	if cred.Uid != uint32(os.Geteuid()) {
		return fmt.Errorf("refuse a peer with uid %d", cred.Uid)
	}
	return nil
}

// watch sends the current status and every later one. A slow client misses intermediate statuses, never the
// last.
func (c *control) watch(conn *net.UnixConn, _ *wire.Request, _ []*os.File) error {
	gone := make(chan struct{})
	go func() { // the client sends nothing more: the read returns when it disconnects
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

// setNotifyTarget takes the descriptors of a notify target and answers with the pod's status.
func (c *control) setNotifyTarget(conn *net.UnixConn, req *wire.NotifyRequest, files []*os.File) error {
	if err := c.engine.notifier.SetTarget(req, files); err != nil {
		return &wire.Error{Message: err.Error(), Code: 125}
	}
	c.mu.Lock()
	st := c.status
	c.mu.Unlock()
	if st == nil { // the pod has only just started
		st = &pod.Status{Version: pod.StatusVersion, Phase: pod.Pending}
	}
	return wire.WriteFrame(conn, wire.Frame{Status: st})
}
