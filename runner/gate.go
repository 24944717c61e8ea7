package runner

import "time"

// gate has what begins at the same time go through a few at a time: probes of a pod's
// containers, which were started together, would all take their memory at once. It bounds
// nothing: who has waited for gateTime goes on, whatever the others do.
type gate chan struct{}

const (
	gateWidth = 4
	gateTime  = 50 * time.Millisecond
)

func newGate() gate { return make(gate, gateWidth) }

// pass returns when it is the caller's turn, who calls done afterwards.
func (g gate) pass() (done func()) {
	select {
	case g <- struct{}{}:
		return func() { <-g }
	default:
	}
	timer := time.NewTimer(gateTime)
	defer timer.Stop()
	select {
	case g <- struct{}{}:
		return func() { <-g }
	case <-timer.C:
		return func() {}
	}
}
