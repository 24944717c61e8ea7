package unit

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/podrun/podrun/internal/store"
)

// Units that start together wait for a start slot. One that stops waiting is not in the way of the others.
func TestStartSlots(t *testing.T) {
	dirs := store.Dirs{Runtime: t.TempDir()}
	var holders []*MainProcess
	for range max(2, runtime.NumCPU()) {
		s := &MainProcess{dirs: dirs}
		if err := s.AcquireStartSlot(t.Context()); err != nil {
			t.Fatal(err)
		}
		holders = append(holders, s)
	}
	acquire := func(ctx context.Context) (*MainProcess, chan error) {
		s, done := &MainProcess{dirs: dirs}, make(chan error, 1)
		go func() { done <- s.AcquireStartSlot(ctx) }()
		return s, done
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, stopped := acquire(ctx)
	_, alsoStopped := acquire(ctx)
	cancel()
	for _, done := range []chan error{stopped, alsoStopped} {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("a wait that was cancelled: %v", err)
		}
	}
	next, done := acquire(t.Context())
	holders[0].ReleaseStartSlot()
	if err := <-done; err != nil || next.startSlot == nil {
		t.Errorf("after a slot was released: %v", err)
	}
	for _, s := range append(holders, next) {
		s.ReleaseStartSlot()
	}
}
