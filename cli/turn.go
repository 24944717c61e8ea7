package cli

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// At boot systemd starts all units at once. On a board with 30 of them, all bringing in
// images and starting containers together, none gets anywhere: they take turns.

const turnTime = 500 * time.Millisecond // between two looks

// takeTurn waits until this is one of the few processes that bring pods up.
func (s *service) takeTurn(ctx context.Context) error {
	for {
		for i := range max(2, runtime.NumCPU()) {
			lock, err := store.OpenFileLock(s.dirs.StartSlot(i))
			if err != nil {
				return report.New(report.Failure, "", "cannot wait for other pods to start: %w", err)
			}
			if free, err := lock.TryExclusive(); free {
				s.slot = lock
				return nil
			} else if lock.Close(); err != nil {
				return fmt.Errorf("cannot wait for other pods to start: %w", err)
			}
		}
		if err := remote.Pause(ctx, turnTime); err != nil {
			return err
		}
	}
}

// giveTurn lets the next one start.
func (s *service) giveTurn() {
	if s.slot != nil {
		s.slot.Close()
		s.slot = nil
	}
}
