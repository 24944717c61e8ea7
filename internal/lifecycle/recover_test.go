package lifecycle

import (
	"testing"
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// TestRecoveredRepeatsMeasurement: a new supervisor repeats a measurement that was under way when the
// old one died.
func TestRecoveredRepeatsMeasurement(t *testing.T) {
	plan := &pod.Plan{
		Containers: []pod.Container{{Name: "a"}},
		Storage:    []pod.Limit{{Kind: pod.VolumeLimit, Name: "v", Bytes: 1}},
	}
	now := Now{Boot: time.Minute}
	o := &Observed{Sandbox: SandboxUp, Storage: Storage{Issued: true}}
	measures := func() (n int) {
		for _, a := range Decide(plan, o, now).Actions {
			if a.Kind == MeasureStorage {
				n++
			}
		}
		return n
	}
	if n := measures(); n != 0 {
		t.Errorf("it is measured %d times at once", n+1)
	}
	o.Apply(plan, Event{At: now, Kind: Recovered})
	if n := measures(); n != 1 {
		t.Errorf("after the recovery it is measured %d times", n)
	}
}
