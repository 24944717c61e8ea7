package handoff

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/runner/clock"
)

// ExitTracker tells how processes have ended. Those of this supervisor are its children, which
// stay zombies until their end is on record; those of an earlier one are the keeper's,
// which keeps the end.
type ExitTracker struct {
	podInit *podinit.Client

	mu         sync.Mutex
	exits      map[procfs.Process]*trackedExit // of earlier supervisors' processes
	collecting bool                            // it is not known yet which of them are wanted
}

type trackedExit struct {
	tracked bool
	exit    chan podinit.Exit
}

func newExitTracker(keeper *podinit.Client) *ExitTracker {
	return &ExitTracker{podInit: keeper, exits: map[procfs.Process]*trackedExit{}, collecting: true}
}

// Track asks for the end of an earlier supervisor's process. Of one that is gone already
// the keeper tells at once; should it know nothing of it, the end is unknown.
func (e *ExitTracker) Track(p procfs.Process) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.entry(p).tracked = true
	if st, ok := procfs.Lookup(p.PID); !ok || st.Process != p {
		time.AfterFunc(ExitTimeout, func() {
			e.Receive(podinit.Exit{PID: p.PID, Start: p.StartTime, Status: unknownStatus, At: clock.Boot()})
		})
	}
}

// entry finds a process's end, or makes it. The caller holds mu.
func (e *ExitTracker) entry(p procfs.Process) *trackedExit {
	if e.exits[p] == nil {
		e.exits[p] = &trackedExit{exit: make(chan podinit.Exit, 1)}
	}
	return e.exits[p]
}

// ForgetUntracked lets the keeper forget the ends that nobody has asked for.
func (e *ExitTracker) ForgetUntracked() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.collecting = false
	for p, end := range e.exits {
		if !end.tracked {
			delete(e.exits, p)
			e.podInit.ForgetExit(p.PID, p.StartTime)
		}
	}
}

// Receive takes an end from the keeper.
func (e *ExitTracker) Receive(x podinit.Exit) {
	p := procfs.Process{PID: x.PID, StartTime: x.Start}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.collecting && e.exits[p] == nil {
		e.podInit.ForgetExit(x.PID, x.Start)
		return
	}
	select {
	case e.entry(p).exit <- x:
	default: // it is known already
	}
}

const (
	ExitTimeout   = 5 * time.Second
	unknownStatus = 255 << 8 // exit code 255
)

// Wait returns how a process has ended, and leaves the end where it is until forget.
func (e *ExitTracker) Wait(p procfs.Process) (x podinit.Exit, err error) {
	e.mu.Lock()
	known := e.exits[p]
	e.mu.Unlock()
	if known != nil {
		x = <-known.exit
		select {
		case known.exit <- x: // for the next who asks
		default:
		}
		return x, nil
	}
	x = podinit.Exit{PID: p.PID, Start: p.StartTime}
	x.Status, err = procfs.WaitNoReap(p.PID)
	x.At = clock.Boot()
	return x, err
}

// Forget lets the end of a process go: it is on record.
func (e *ExitTracker) Forget(p procfs.Process) {
	e.mu.Lock()
	known := e.exits[p]
	delete(e.exits, p)
	e.mu.Unlock()
	if known != nil {
		e.podInit.ForgetExit(p.PID, p.StartTime)
		return
	}
	for {
		if _, err := unix.Wait4(p.PID, nil, 0, nil); err != unix.EINTR {
			return
		}
	}
}
