package probe

import "time"

// Gate has what begins at the same time go through a few at a time: probes of a pod's
// containers, which were started together, would all take their memory at once. It bounds
// nothing: who has waited for gateTimeout goes on, whatever the others do.
type Gate chan struct{}

const (
	gateWidth   = 4
	gateTimeout = 50 * time.Millisecond
)

// NewGate returns a Gate that lets gateWidth probes run at once.
func NewGate() Gate { return make(Gate, gateWidth) }

// Enter returns when it is the caller's turn, who calls done afterwards.
func (g Gate) Enter() (done func()) {
	select {
	case g <- struct{}{}:
		return func() { <-g }
	default:
	}
	timer := time.NewTimer(gateTimeout)
	defer timer.Stop()
	select {
	case g <- struct{}{}:
		return func() { <-g }
	case <-timer.C:
		return func() {}
	}
}
