package runner

import (
	"os"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/testenv"
)

// A pod whose runtime directory is lost again while it recovers does not end: it continues once the directory can be
// made. Meanwhile a file has its name.
func TestRuntimeLostDuringRecovery(t *testing.T) {
	testenv.NoLeaks(t)
	w := startWhole(t, risingPlan(t, "exec sleep 1000"))
	w.until(running)
	_, podInit := w.processes()
	if err := os.Rename(w.dirs.Runtime, w.dirs.Runtime+".lost"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.dirs.Runtime, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	kill9(t, podInit)
	deadline := time.Now().Add(patient)
	for tries := 0; tries < 2; { // the second one is there because the first has failed
		now, _, ok := w.place.PodInit()
		if ok && now != podInit {
			podInit, tries = now, tries+1
		}
		if !w.place.Alive() || time.Now().After(deadline) {
			t.Fatalf("after %d more pod inits the pod lives: %t", tries, w.place.Alive())
		}
		idle(time.Millisecond)
	}
	if err := os.Remove(w.dirs.Runtime); err != nil {
		t.Fatal(err)
	}
	w.untilAgain("running", running)
}
