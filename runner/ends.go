package runner

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/stage"
)

// ends tells how processes have ended. Those of this supervisor are its children, which
// stay zombies until their end is on record; those of an earlier one are the keeper's,
// which keeps the end.
type ends struct {
	keeper *stage.Keeper

	mu    sync.Mutex
	known map[process]*end // of earlier supervisors' processes
	early bool             // it is not known yet which of them are wanted
}

type end struct {
	wanted bool
	told   chan stage.Exit
}

func newEnds(keeper *stage.Keeper) *ends {
	return &ends{keeper: keeper, known: map[process]*end{}, early: true}
}

// adopt asks for the end of an earlier supervisor's process. Of one that is gone already
// the keeper tells at once; should it know nothing of it, the end is unknown.
func (e *ends) adopt(p process) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.of(p).wanted = true
	if st, ok := stat(p.PID); !ok || st.process != p {
		time.AfterFunc(tellTime, func() {
			e.told(stage.Exit{PID: p.PID, Start: p.Start, Status: unknownEnd, At: bootTime()})
		})
	}
}

// of finds a process's end, or makes it. The caller holds mu.
func (e *ends) of(p process) *end {
	if e.known[p] == nil {
		e.known[p] = &end{told: make(chan stage.Exit, 1)}
	}
	return e.known[p]
}

// adopted lets the keeper forget the ends that nobody has asked for.
func (e *ends) adopted() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.early = false
	for p, end := range e.known {
		if !end.wanted {
			delete(e.known, p)
			e.keeper.Forget(p.PID, p.Start)
		}
	}
}

// told takes an end from the keeper.
func (e *ends) told(x stage.Exit) {
	p := process{x.PID, x.Start}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.early && e.known[p] == nil {
		e.keeper.Forget(x.PID, x.Start)
		return
	}
	select {
	case e.of(p).told <- x:
	default: // it is known already
	}
}

const (
	tellTime   = 5 * time.Second
	unknownEnd = 255 << 8 // exit code 255
)

// wait returns how a process has ended, and leaves the end where it is until forget.
func (e *ends) wait(p process) (x stage.Exit, err error) {
	e.mu.Lock()
	known := e.known[p]
	e.mu.Unlock()
	if known != nil {
		x = <-known.told
		select {
		case known.told <- x: // for the next who asks
		default:
		}
		return x, nil
	}
	x = stage.Exit{PID: p.PID, Start: p.Start}
	x.Status, err = childEnd(p.PID)
	x.At = bootTime()
	return x, err
}

// forget lets the end of a process go: it is on record.
func (e *ends) forget(p process) {
	e.mu.Lock()
	known := e.known[p]
	delete(e.known, p)
	e.mu.Unlock()
	if known != nil {
		e.keeper.Forget(p.PID, p.Start)
		return
	}
	for {
		if _, err := unix.Wait4(p.PID, nil, 0, nil); err != unix.EINTR {
			return
		}
	}
}
