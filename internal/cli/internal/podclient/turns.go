package podclient

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// stopTurns bounds how many stops of this process begin at the same time. Each wakes a supervisor: hundreds at once
// would load the machine until their time limits are exceeded.
var stopTurns = make(turns, max(8, 2*runtime.NumCPU()))

// turns is a semaphore with the capacity of the channel.
type turns chan struct{}

// turnTime is how long a turn lasts at most. A pod that takes longer to stop waits for its containers, for up to its
// grace period, and needs no processor.
const turnTime = 300 * time.Millisecond

// take waits for a turn. The turn lasts until end is called, or for turnTime.
func (t turns) take(ctx context.Context) (end func(), err error) {
	select {
	case t <- struct{}{}:
		end = sync.OnceFunc(func() { <-t })
		time.AfterFunc(turnTime, end)
		return end, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
