package runner

import (
	"testing"
	"time"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/pod"
)

// A pod whose removal was asked for removes itself when it has ended, without whoever asked, and
// whatever is asked next. How another pod has ended stays on record.
func TestEndOfALeavingPod(t *testing.T) {
	for name, removes := range map[string][]bool{
		"stopped": {false}, "leaving": {true}, "leaving, then stopped": {true, false}, "stopped, then leaving": {false, true},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.NoLeaks(t)
			w := startWhole(t, newPlan(nil, []pod.Container{shell(layer(t), "app", "exec sleep 1000")}))
			w.until(running)
			leaves := false
			for i, remove := range removes {
				grace := int64(1000) // it does not heed SIGTERM
				if i == len(removes)-1 {
					grace = 0
				}
				leaves = leaves || remove
				conn := w.dial()
				if err := wire.WriteRequest(conn, wire.Request{Verb: wire.Stop, Stop: &wire.StopRequest{GraceSeconds: &grace, Remove: remove}}); err != nil {
					t.Fatal(err)
				}
				if grace > 0 {
					w.until(func(st *pod.Status) bool { return st.Deleting })
				}
				conn.Close() // nobody waits for its end
			}
			if leaves {
				for deadline := time.Now().Add(time.Minute); w.place.HasRemains(); time.Sleep(10 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatal("it is still there")
					}
				}
				return
			}
			lock, err := w.place.WaitLock()
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Close()
			if st, err := w.place.Status(); err != nil || !st.Phase.Terminal() || !st.Deleting {
				t.Errorf("it ended with %+v (%v)", st, err)
			}
		})
	}
}
