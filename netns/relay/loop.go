package relay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/rawsys"
)

// Loop waits for many descriptors on one thread and handles their events there: the thread that is
// woken reads and writes. With a goroutine for each direction, Go's scheduler would be between the
// two, which took longer than both, and woke more threads than had work.
//
// Loop calls callbacks on its thread, one after the other; they must not block.
type Loop struct {
	epoll, wake int
	done        chan struct{} // closed when the thread has ended

	mu     sync.Mutex
	posted []func()
	closed bool

	// For the loop's thread.
	watched    map[int32]watch
	generation int32 // distinguishes a descriptor from an earlier one with the same number
	conns      map[*proxyConn]bool
	connecting map[*proxyConn]time.Time // deadlines of connections with one end not yet connected
	expiring   bool                     // a ticker checks them
	runnable   []*proxyConn             // those with more to do after their turn
	tickers    []func() bool
	nextTick   time.Time // time of the next tick
	idlePipes  []pipe
	buffer     [copySize]byte
	spin       busyPoll
}

// watch is the handler of a descriptor.
type watch struct {
	generation int32
	handle     func(events uint32)
}

// Events for which Watch calls its function. Errors and hang-ups are always among them (epoll_ctl(2)).
// Readable is level-triggered: it is reported as long as there is something to read. The others, for
// connections, are edge-triggered: each change is reported once (epoll(7)).
const (
	Readable       = unix.EPOLLIN
	readEdges      = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLPRI | unix.EPOLLET
	ReadWriteEdges = readEdges | unix.EPOLLOUT
)

// tickInterval is how often a loop calls its tickers.
const tickInterval = time.Second

// maxEvents is the number of events that one poll returns.
const maxEvents = 64

// yieldInterval is after how long a loop yields its P, which wakes a thread or two. Go's scheduler
// would take the P, at a worse moment, from a goroutine that has had it for 10 ms.
const yieldInterval = 8 * time.Millisecond

// NewLoop starts a loop, whose thread joins the namespaces of the given files if there are any.
func NewLoop(nsFiles ...string) (*Loop, error) {
	processors() // read it now: a process that releases memory has one P for a moment
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("wait for connections: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err == nil {
		err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, wake, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(wake)})
	}
	if err != nil {
		unix.Close(epoll)
		unix.Close(wake)
		return nil, fmt.Errorf("wait for connections: %w", err)
	}
	l := &Loop{epoll: epoll, wake: wake, done: make(chan struct{}), watched: map[int32]watch{}, conns: map[*proxyConn]bool{}, connecting: map[*proxyConn]time.Time{}}
	if len(nsFiles) == 0 {
		go l.run()
		return l, nil
	}
	thread, err := nsthread.Start(nsFiles...)
	if err != nil {
		unix.Close(epoll)
		unix.Close(wake)
		return nil, err
	}
	go func() {
		defer thread.Close()
		_ = thread.Do(func() error { l.run(); return nil })
	}()
	return l, nil
}

// Do calls f on the loop's thread and waits for it.
func (l *Loop) Do(f func() error) error {
	done := make(chan error, 1)
	if !l.Post(func() { done <- f() }) {
		return net.ErrClosed
	}
	return <-done
}

// Post calls f on the loop's thread later; false if the loop has been closed.
func (l *Loop) Post(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.posted = append(l.posted, f)
	if len(l.posted) == 1 {
		l.wakeUp()
	}
	return true
}

func (l *Loop) wakeUp() { _, _ = unix.Write(l.wake, binary.NativeEndian.AppendUint64(nil, 1)) }

// Close resets all connections of the loop and returns when no callback runs any more. It may be
// called again, but not on the loop's thread.
func (l *Loop) Close() {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		l.wakeUp()
	}
	l.mu.Unlock()
	<-l.done
}

// Watch calls f when fd is ready. Nothing else may wait for fd. On the loop's thread only, like
// Unwatch.
func (l *Loop) Watch(fd int, events uint32, f func(events uint32)) error {
	l.generation++
	if err := rawsys.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd), Pad: l.generation}); err != nil {
		return fmt.Errorf("wait for a descriptor: %w", err)
	}
	l.watched[int32(fd)] = watch{l.generation, f}
	return nil
}

// setHandler sets the handler of fd, which may be watched for these events already.
func (l *Loop) setHandler(fd int, events uint32, f func(events uint32)) error {
	if w := l.watched[int32(fd)]; w.handle != nil {
		l.watched[int32(fd)] = watch{w.generation, f}
		return nil
	}
	return l.Watch(fd, events, f)
}

// setEvents changes the events of a watched descriptor; those that are pending are reported at once.
func (l *Loop) setEvents(fd int, events uint32) error {
	w := l.watched[int32(fd)]
	return rawsys.EpollCtl(l.epoll, unix.EPOLL_CTL_MOD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd), Pad: w.generation})
}

// Unwatch ends the calls for fd. closing means that the caller closes fd next; otherwise fd stays open, here
// or in another process.
func (l *Loop) Unwatch(fd int, closing bool) {
	delete(l.watched, int32(fd))
	if !closing {
		_ = unix.EpollCtl(l.epoll, unix.EPOLL_CTL_DEL, fd, nil)
	}
}

// AddTicker calls f about every second until it returns false.
func (l *Loop) AddTicker(f func() bool) {
	if len(l.tickers) == 0 {
		l.nextTick = time.Now().Add(tickInterval)
	}
	l.tickers = append(l.tickers, f)
}

// run is the thread's main function.
func (l *Loop) run() {
	defer close(l.done)
	defer l.closeAll()
	events := make([]unix.EpollEvent, maxEvents)
	for yielded := time.Now(); ; {
		if time.Since(yielded) > yieldInterval {
			runtime.Gosched()
			yielded = time.Now()
		}
		n, err := l.wait(events)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return // cannot happen
		}
		for _, e := range events[:max(n, 0)] {
			if e.Fd == int32(l.wake) {
				if !l.runPosted() {
					return
				}
			} else if w := l.watched[e.Fd]; w.generation == e.Pad && w.handle != nil {
				w.handle(e.Events)
			}
		}
		late := l.runnable
		l.runnable = nil
		for _, j := range late {
			j.queued = false
			j.run()
		}
		l.tick()
	}
}

// timeout returns how many milliseconds to wait.
func (l *Loop) timeout() int {
	switch {
	case len(l.runnable) > 0:
		return 0
	case len(l.tickers) > 0:
		return int(tickInterval / time.Millisecond)
	}
	return -1
}

func (l *Loop) tick() {
	if len(l.tickers) == 0 {
		return
	}
	now := time.Now()
	if now.Before(l.nextTick) {
		return
	}
	l.nextTick = now.Add(tickInterval)
	all := l.tickers
	l.tickers = nil
	for _, f := range all {
		if f() {
			l.tickers = append(l.tickers, f)
		}
	}
}

// runPosted runs the posted functions; false ends the loop.
func (l *Loop) runPosted() bool {
	var count [8]byte
	_, _ = unix.Read(l.wake, count[:])
	l.mu.Lock()
	all, closed := l.posted, l.closed
	l.posted = nil
	l.mu.Unlock()
	for _, f := range all {
		f()
	}
	return !closed
}

// closeAll resets all connections and frees all resources.
func (l *Loop) closeAll() {
	for j := range l.conns {
		j.reset()
	}
	l.closeIdlePipes()
	unix.Close(l.epoll)
	unix.Close(l.wake)
}
