package runner

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/pod"
)

// How a pod has ended outlives a reboot, unless who asked last for its end is to remove it.
func TestEndOfALeavingPod(t *testing.T) {
	for name, removes := range map[string][]bool{
		"stopped": {false}, "leaving": {true}, "interrupted, then stopped": {true, false}, "stopped, then leaving": {false, true},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.NoLeaks(t)
			w := startWhole(t, newPlan(nil, []pod.Container{shell(layer(t), "app", "exec sleep 1000")}))
			w.until(running)
			ask := func(remove bool, grace int64) *net.UnixConn {
				conn := w.dial()
				if err := wire.WriteRequest(conn, wire.Request{Verb: wire.Stop, Stop: &wire.StopRequest{GraceSeconds: &grace, Remove: remove}}); err != nil {
					conn.Close()
					t.Fatal(err)
				}
				return conn
			}
			last := len(removes) - 1
			for _, remove := range removes[:last] {
				conn := ask(remove, 1000) // it does not heed SIGTERM
				w.until(func(st *pod.Status) bool { return st.Deleting })
				conn.Close()
			}
			remove := removes[last]
			conn := ask(remove, 0)
			defer conn.Close()
			_, _, _ = wire.ReadFrame(conn) // its end
			lock, err := w.place.WaitLock()
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Close()
			if st, err := w.place.Status(); err != nil || !st.Phase.Terminal() || !st.Deleting {
				t.Errorf("it ended with %+v (%v)", st, err)
			}
			if err := os.RemoveAll(w.place.RuntimeDir()); err != nil {
				t.Fatal(err)
			}
			if _, err := w.place.Status(); errors.Is(err, fs.ErrNotExist) != remove {
				t.Errorf("after a reboot there is a status: %v", err)
			}
		})
	}
}
