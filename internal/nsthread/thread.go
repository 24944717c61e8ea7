package nsthread

import (
	"errors"
	"runtime"
)

// Thread is a thread that stays in other namespaces, for frequent use: making a thread for each use
// costs more than the use.
type Thread struct{ calls chan call }

type call struct {
	f    func() error
	done chan error
}

// Start starts a thread that has joined the namespaces of the given files, as Do does.
func Start(nsFiles ...string) (*Thread, error) {
	t := &Thread{calls: make(chan call)}
	ready := make(chan error, 1)
	go t.run(nsFiles, ready)
	if err := <-ready; err != nil {
		return nil, err
	}
	return t, nil
}

// run is the thread's loop. The main thread cannot be discarded afterwards: run keeps it locked
// until it has another thread.
func (t *Thread) run(nsFiles []string, ready chan<- error) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	if onMainThread() {
		other := make(chan error, 1)
		go t.run(nsFiles, other)
		ready <- <-other
		runtime.UnlockOSThread()
		return
	}
	for _, file := range nsFiles {
		if err := enter(file); err != nil {
			ready <- err
			return
		}
	}
	ready <- nil
	for c := range t.calls {
		t.serve(c)
	}
}

func (t *Thread) serve(c call) {
	err := errGoexit
	defer func() { c.done <- err }()
	err = c.f()
}

// Do runs f on the thread and waits for it. f must be short, because other callers wait for the
// thread. f must not start goroutines that depend on the thread's namespaces.
func (t *Thread) Do(f func() error) error {
	c := call{f, make(chan error, 1)}
	t.calls <- c
	return <-c.done
}

// Close ends the thread. It must not be used afterwards.
func (t *Thread) Close() { close(t.calls) }

// errGoexit means that f has called runtime.Goexit, as testing's Fatal does.
var errGoexit = errors.New("the function ended its goroutine")
