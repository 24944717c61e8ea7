package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/pod"
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

// The leases of the user's other pods are listed; a dead pod's lease does not count.
func TestOtherLeases(t *testing.T) {
	dirs := Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
	made := func(name string, slot int) Pod {
		p := dirs.Pod("default", name)
		if err := p.Create(&pod.Plan{Name: name}, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		if slot == 0 {
			return p
		}
		if err := p.WriteLease(Lease{Slot: slot, Masqueraded: slot == 3}); err != nil {
			t.Fatal(err)
		}
		return p
	}
	lease := made("own", 1)
	made("none", 0)
	made("dead", 2)
	lock, err := made("alive", 3).Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	type row struct {
		Slot               int
		Masqueraded, Alive bool
	}
	var got []row
	others, err := lease.OtherLeases()
	for _, l := range others {
		got = append(got, row{l.Slot, l.Masqueraded, l.Alive()})
	}
	if diff := cmp.Diff([]row{{3, true, true}, {2, false, false}}, got); diff != "" || err != nil {
		t.Errorf("%v; (-want +got):\n%s", err, diff)
	}
}
