package probe

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Quick probes begin a few at a time; slow ones delay the others only up to gateTimeout.
func TestGate(t *testing.T) {
	for name, c := range map[string]struct {
		each     time.Duration
		together int32 // the maximum
		within   time.Duration
	}{
		"quick": {time.Millisecond, gateWidth, 100 * time.Millisecond / gateWidth},
		"slow":  {time.Hour, 100, time.Hour + gateTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, begun := NewGate(), time.Now()
				var now, most atomic.Int32
				var all sync.WaitGroup
				for range 100 {
					all.Go(func() {
						defer g.Enter()()
						if n := now.Add(1); n > most.Load() {
							most.Store(n)
						}
						time.Sleep(c.each)
						now.Add(-1)
					})
				}
				all.Wait()
				if took := time.Since(begun); most.Load() > c.together || took > c.within {
					t.Errorf("%d at once, in %v", most.Load(), took)
				}
			})
		})
	}
}
