package node

import "testing"

// TestNoSignals: who waits for signals of a command ends with it. A goroutine of each kubectl exec stayed.
func TestNoSignals(t *testing.T) {
	arrived, stop := noSignals()
	ended := make(chan struct{})
	go func() {
		for range arrived {
		}
		close(ended)
	}()
	stop()
	stop() // as podclient.Signals permits
	<-ended
}
