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

// mostLate bounds those that wait, which have descriptors beyond the bound of flows.
const mostLate = reserve / 8

// meet joins one to the far side once that has answered, and resets it if it does not. Where there
// is no room for that it waits, in the place of who has waited for longest if too many do.
func (e *Egress) meet(t taken) {
	e.supersede(t.flow)
	err := e.reach(t)
	if err == nil {
		return
	}
	if !exhausted(err) || time.Now().After(t.until) {
		relay.ResetFD(t.near)
		return
	}
	if len(e.tcp.late) >= mostLate {
		relay.ResetFD(e.tcp.late[0].near)
		e.tcp.late = e.tcp.late[1:]
		e.end()
	}
	e.flows.Add(1) // beyond the bound
	e.tcp.late = append(e.tcp.late, t)
	e.wait()
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

// meetLate tries again with those that are still there. None of them is in another's way.
func (e *Egress) meetLate() {
	if len(e.tcp.late) == 0 {
		return
	}
	e.reading.RLock()
	defer e.reading.RUnlock()
	all := e.tcp.late
	e.tcp.late = nil
	e.flows.Add(-int64(len(all)))
	for _, t := range all {
		if isGone(t.near) {
			relay.ResetFD(t.near)
		} else {
			e.meet(t)
		}
	}
}

// isGone says whether the other end of a connection has reset it.
func isGone(fd int) bool {
	at := []unix.PollFd{{Fd: int32(fd)}}
	n, err := unix.Poll(at, 0)
	return err == nil && n > 0 && at[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
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
