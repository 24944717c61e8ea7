package runner

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/pod"
)

// How a pod has ended outlives a reboot, unless it was asked to end in order to be removed.
func TestEndOfALeavingPod(t *testing.T) {
	for name, remove := range map[string]bool{"stopped": false, "leaving": true} {
		t.Run(name, func(t *testing.T) {
			testenv.NoLeaks(t)
			w := startWhole(t, newPlan(nil, []pod.Container{shell(layer(t), "app", "exec sleep 1000")}))
			w.until(running)
			conn := w.dial()
			defer conn.Close()
			none := int64(0)
			if err := wire.WriteRequest(conn, wire.Request{Verb: wire.Stop, Stop: &wire.StopRequest{GraceSeconds: &none, Remove: remove}}); err != nil {
				t.Fatal(err)
			}
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
