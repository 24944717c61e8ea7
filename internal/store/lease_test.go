package store

import (
	"testing"
	"time"
)

// Of pods that start together one sweeps the router, and each of the others waits for its turn.
func TestOneSweepInEachInterval(t *testing.T) {
	d := Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
	sweep := func(name string, interval time.Duration) time.Duration {
		wait, err := d.Pod("ns", name).BeginSweep(interval)
		if err != nil {
			t.Fatal(err)
		}
		return wait
	}
	if wait := sweep("a", time.Hour); wait != 0 {
		t.Errorf("the first waits %v", wait)
	}
	if wait := sweep("b", time.Hour); wait <= 0 || wait > time.Hour {
		t.Errorf("the second waits %v", wait)
	}
	if wait := sweep("b", time.Nanosecond); wait != 0 {
		t.Errorf("after the interval it waits %v", wait)
	}
}
