package handoff

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/runner/clock"
)

// ExitTracker reports how processes have exited. This supervisor reaps its own children only after their exit
// status has been recorded. Pod init reaps the children of earlier supervisors, and keeps their exit statuses.
type ExitTracker struct {
	podInit *podinit.Client

	mu         sync.Mutex
	exits      map[procfs.Process]*trackedExit // of earlier supervisors' processes
	collecting bool                            // until ForgetUntracked: any status may still be requested
}

type trackedExit struct {
	tracked bool
	exit    chan podinit.Exit
}

func newExitTracker(podInit *podinit.Client) *ExitTracker {
	return &ExitTracker{podInit: podInit, exits: map[procfs.Process]*trackedExit{}, collecting: true}
}

// Track requests the exit status of an earlier supervisor's process. If the process has exited, pod init
// sends the status at once; if pod init does not know the process, the status is unknown.
func (e *ExitTracker) Track(p procfs.Process) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.entry(p).tracked = true
	if st, ok := procfs.Lookup(p.PID); !ok || st.Process != p {
		time.AfterFunc(statusTimeout, func() {
			e.Receive(podinit.Exit{PID: p.PID, Start: p.StartTime, Status: unknownStatus, At: clock.Boot()})
		})
	}
}

// entry returns a process's entry, and adds it if missing. The caller holds mu.
func (e *ExitTracker) entry(p procfs.Process) *trackedExit {
	if e.exits[p] == nil {
		e.exits[p] = &trackedExit{exit: make(chan podinit.Exit, 1)}
	}
	return e.exits[p]
}

// ForgetUntracked lets pod init drop the exit statuses that no Track has requested.
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

// Receive takes an exit status from pod init.
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
	default: // it was received already
	}
}

const (
	// statusTimeout is how long Track waits for pod init to send the exit status of a process that is gone. Then
	// the status is unknown.
	statusTimeout = 5 * time.Second

	unknownStatus = 255 << 8 // exit code 255
)

// Wait waits for a process and returns its exit status. The status stays available until Forget.
func (e *ExitTracker) Wait(p procfs.Process) (x podinit.Exit, err error) {
	e.mu.Lock()
	known := e.exits[p]
	e.mu.Unlock()
	if known != nil {
		x = <-known.exit
		select {
		case known.exit <- x: // for the next Wait
		default:
		}
		return x, nil
	}
	x = podinit.Exit{PID: p.PID, Start: p.StartTime}
	x.Status, err = procfs.WaitNoReap(p.PID)
	x.At = clock.Boot()
	return x, err
}

// Forget ends the tracking of a process whose exit is recorded: it reaps an own child, and makes pod init drop
// the exit status of another process.
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
