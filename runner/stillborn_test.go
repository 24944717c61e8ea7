package runner

import (
	"sync"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/pod"
)

// A container that ends while commands are started in it ends, and nothing is left of them.
func TestContainerEndsWhileCommandsStart(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	for range 10 {
		plan := newPlan(nil, []pod.Container{shell(l, "a", "usleep 150000"), shell(l, "b", "exec sleep 1000")})
		plan.RestartPolicy = pod.RestartNever
		p := start(t, plan)
		st := p.until("begun", func(st pod.Status) bool { return st.Phase == pod.Running })
		var asking sync.WaitGroup
		for range 4 {
			asking.Go(func() {
				for code := 0; code == 0; {
					code, _ = p.request(&wire.ExecRequest{Container: "a", Args: []string{"true"}})
				}
			})
		}
		asking.Wait()
		ended := func(st pod.Status) bool { return st.Containers[0].State.Terminated != nil }
		if !ended(st) {
			p.until("a's end", ended)
		}
		p.stop(0)
	}
}
