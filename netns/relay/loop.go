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

// Loop waits for many descriptors on one thread, and does there what follows: who is woken
// is who reads and writes. With a goroutine for each direction Go's scheduler is between
// the two, which took longer than both, and wakes more threads than have something to do.
//
// What is given to it to be called is called on its thread, one after the other, and must
// not wait for anything.
type Loop struct {
	epoll, wake int
	done        chan struct{} // closed when the thread has ended

	mu     sync.Mutex
	posted []func()
	closed bool

	// What follows is the thread's.
	watched    map[int32]watch
	generation int32 // tells a descriptor from one of the same number before it
	conns      map[*proxyConn]bool
	connecting map[*proxyConn]time.Time // until when those wait of which one end is not connected yet
	expiring   bool                     // they are looked after
	runnable   []*proxyConn             // that have not come to an end in their turn
	tickers    []func() bool
	nextTick   time.Time // when to tick
	idlePipes  []pipe
	buffer     [copySize]byte
	spin       busyPoll
}

// watch is who is told of a descriptor.
type watch struct {
	generation int32
	handle     func(events uint32)
}

// What a loop is told of a descriptor: always errors and hang-ups (epoll_ctl(2)), and that
// there is something to read, for as long as there is; or, of connections, each change once
// (epoll(7)): what can be read, and what can be written, too.
const (
	Readable       = unix.EPOLLIN
	readEdges      = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLPRI | unix.EPOLLET
	ReadWriteEdges = readEdges | unix.EPOLLOUT
)

// tickInterval is how often a loop looks after what waits for nothing but time.
const tickInterval = time.Second

// maxEvents is how many descriptors one look tells of.
const maxEvents = 64

// yieldInterval is after how long a loop lets others have its place, which wakes a thread or two.
// Go's scheduler takes it, at a worse moment, from who has had it for 10 ms.
const yieldInterval = 8 * time.Millisecond

// NewLoop starts a loop, whose thread joins the namespaces of the given files if there are
// any.
func NewLoop(nsFiles ...string) (*Loop, error) {
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

// Do has f called, and waits for it.
func (l *Loop) Do(f func() error) error {
	done := make(chan error, 1)
	if !l.Post(func() { done <- f() }) {
		return net.ErrClosed
	}
	return <-done
}

// Post has f called; false if the loop has been closed.
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

// Close resets what the loop carries, and returns when nothing is called any more. It may
// be called again, but not on the loop's thread.
func (l *Loop) Close() {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		l.wakeUp()
	}
	l.mu.Unlock()
	<-l.done
}

// Watch has f called when fd, of which nobody else waits, is ready. On the loop's thread
// only, as is Forget.
func (l *Loop) Watch(fd int, events uint32, f func(events uint32)) error {
	l.generation++
	if err := rawsys.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd), Pad: l.generation}); err != nil {
		return fmt.Errorf("wait for a descriptor: %w", err)
	}
	l.watched[int32(fd)] = watch{l.generation, f}
	return nil
}

// setHandler has f told of fd, which may be watched for these events already.
func (l *Loop) setHandler(fd int, events uint32, f func(events uint32)) error {
	if w := l.watched[int32(fd)]; w.handle != nil {
		l.watched[int32(fd)] = watch{w.generation, f}
		return nil
	}
	return l.Watch(fd, events, f)
}

// watchWrites has other events of a descriptor told, too: those that there are at once.
func (l *Loop) watchWrites(fd int, events uint32) error {
	w := l.watched[int32(fd)]
	return rawsys.EpollCtl(l.epoll, unix.EPOLL_CTL_MOD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd), Pad: w.generation})
}

// Unwatch is for a descriptor that is closed next, or stays with others.
func (l *Loop) Unwatch(fd int, closing bool) {
	delete(l.watched, int32(fd))
	if !closing {
		_ = unix.EpollCtl(l.epoll, unix.EPOLL_CTL_DEL, fd, nil)
	}
}

// AddTicker has f called every second or so until it returns false.
func (l *Loop) AddTicker(f func() bool) {
	if len(l.tickers) == 0 {
		l.nextTick = time.Now().Add(tickInterval)
	}
	l.tickers = append(l.tickers, f)
}

// run is the thread's life.
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
			return // it cannot be
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

// timeout is for how many milliseconds to wait.
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

// runPosted does what others want; false ends the loop.
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

// closeAll resets and gives back all.
func (l *Loop) closeAll() {
	for j := range l.conns {
		j.reset()
	}
	l.closeIdlePipes()
	unix.Close(l.epoll)
	unix.Close(l.wake)
}
