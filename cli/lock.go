package cli

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/podrun/podrun/internal/store"
)

// lockWithin takes the pod, and waits for whoever has it no longer than limit.
func lockWithin(ctx context.Context, p store.Pod, limit time.Duration) (*os.File, error) {
	deadline := time.Now().Add(limit)
	for {
		lock, err := p.Lock()
		if err == nil || !errors.Is(err, store.ErrLocked) || time.Now().After(deadline) {
			return lock, err
		}
		if err := pause(ctx, pollTime); err != nil {
			return nil, err
		}
	}
}
