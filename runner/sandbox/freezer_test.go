package sandbox

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podrun/podrun/internal/lifecycle"
)

type fakeCgroup struct{ frozen []bool }

func (c *fakeCgroup) Freeze(frozen bool) error { c.frozen = append(c.frozen, frozen); return nil }

func (c *fakeCgroup) AwaitFrozen(time.Duration) error { return nil }

// wantedTooLate returns a Freezer in which a process is being started while a pause is wanted, and a
// channel that receives the result of Apply.
func wantedTooLate(t *testing.T, c *fakeCgroup) (*Freezer, chan bool) {
	f := newFreezer(false)
	if err := f.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.Set(true)
	done := make(chan bool)
	go func() {
		is, err := f.Apply(c)
		done <- is && err == nil
	}()
	synctest.Wait()
	return f, done
}

// No process is started in a frozen cgroup, and a cgroup is not frozen while a process is being started in
// it.
func TestFreezerAndWhatIsBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &fakeCgroup{}
		f, done := wantedTooLate(t, c)
		if c.frozen != nil {
			t.Error("it was frozen while a process was being begun")
		}
		late, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.Acquire(late); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a process was begun although a pause is wanted: %v", err)
		}
		f.Release()
		if !<-done || len(c.frozen) != 1 || !c.frozen[0] {
			t.Errorf("it was not frozen: %v", c.frozen)
		}
		entered := make(chan error)
		go func() { entered <- f.Acquire(t.Context()) }()
		synctest.Wait()
		select {
		case <-entered:
			t.Error("a process was begun in a frozen cgroup")
		default:
		}
		f.Set(false)
		if is, err := f.Apply(c); is || err != nil {
			t.Errorf("it is still frozen: %v", err)
		}
		if err := <-entered; err != nil {
			t.Error(err)
		}
	})
}

// A pause that is cancelled before it began freezes nothing.
func TestFreezerTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &fakeCgroup{}
		f, done := wantedTooLate(t, c)
		f.Set(false)
		if <-done || slices.Contains(c.frozen, true) {
			t.Errorf("it is frozen: %v", c.frozen)
		}
		f.Release()
	})
}

// A cgroup that another supervisor has frozen stays frozen.
func TestFreezerTakenUp(t *testing.T) {
	f := newFreezer(true)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Acquire(done); !errors.Is(err, context.Canceled) {
		t.Errorf("a process was begun in a frozen cgroup: %v", err)
	}
}

// A pause that had only begun when a supervisor died is undone; one that was reported as complete stays.
func TestFreezerOfAPauseThatWasBegun(t *testing.T) {
	for state, thawed := range map[lifecycle.PauseState]bool{
		lifecycle.PauseNone: true, lifecycle.PausePending: true, lifecycle.PauseFreezing: true,
		lifecycle.PauseOn: false, lifecycle.PauseEnding: false, lifecycle.PauseThawing: false,
	} {
		f, c := newFreezer(true), &fakeCgroup{}
		if err := f.Recover(c, state); err != nil {
			t.Fatal(err)
		}
		done, cancel := context.WithCancel(t.Context())
		cancel()
		if err := f.Acquire(done); (err == nil) != thawed || (len(c.frozen) == 1) != thawed {
			t.Errorf("%q: %v, the kernel was told %v", state, err, c.frozen)
		}
	}
	f, c := newFreezer(false), &fakeCgroup{}
	if err := f.Recover(c, lifecycle.PauseNone); err != nil || c.frozen != nil {
		t.Errorf("a cgroup that is not frozen: %v, the kernel was told %v", err, c.frozen)
	}
}
