package egress

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/netns/relay"
)

// taken is a connection whose pod's side was taken before the other one was asked, as the same
// address has just answered (netns: answering.go), or as a process has died in between.
type taken struct {
	flow  flow
	near  int       // descriptor
	until time.Time // when to give up
}

// mostLate bounds those that wait, which have descriptors beyond the bound of flows. More wait in the kernel's
// own queue.
const mostLate = reserve / 4

// meet joins one to the far side once that has answered, and resets it if it does not. Where there
// is nothing left to reach that by it waits.
func (e *Egress) meet(t taken) {
	e.supersede(t.flow)
	err := e.reach(t)
	switch {
	case err == nil:
	case exhausted(err) && time.Now().Before(t.until):
		e.flows.Add(1) // beyond the bound
		e.tcp.late = append(e.tcp.late, t)
		e.wait()
	default:
		relay.ResetFD(t.near)
	}
}

// reach begins to connect to the far side.
func (e *Egress) reach(t taken) error {
	to, ok := e.target(t.flow.dst)
	if !ok {
		return unix.ENETUNREACH
	}
	if !e.begin() {
		return unix.EMFILE
	}
	far, err := e.farSide(to)
	if err != nil {
		e.end()
		return err
	}
	c := &connection{far: far, state: joined, until: time.Now().Add(briefTime)}
	e.tcp.all[t.flow] = c // in the place of one that has just ended, perhaps
	e.loop.Meet(t.near, far, connectTime, func() { e.forget(t.flow, c) })
	e.wait()
	return nil
}

// meetLate tries again.
func (e *Egress) meetLate() {
	all := e.tcp.late
	e.tcp.late = nil
	for _, t := range all {
		e.end()
		e.meet(t)
	}
}

// exhausted says whether an error will pass by itself, when others have ended.
func exhausted(err error) bool {
	for _, passing := range []error{unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM, unix.EADDRNOTAVAIL} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}
