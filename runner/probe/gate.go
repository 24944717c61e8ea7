package probe

import "time"

// Gate lets only a few probes run at a time. Otherwise the probes of containers that were started together would
// all need memory at once. A Gate is no hard limit: after gateTimeout a caller proceeds anyway.
type Gate chan struct{}

const (
	gateWidth   = 4
	gateTimeout = 50 * time.Millisecond
)

// NewGate returns a Gate that lets gateWidth probes run at once.
func NewGate() Gate { return make(Gate, gateWidth) }

// Enter returns when it is the caller's turn. The caller calls done afterwards.
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
