package cli

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/podrun/podrun/internal/report"
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

// busy is the error of a pod that another command is making or removing.
func busy(p store.Pod) error {
	return report.New(report.Failure, "try again when that is done; podrun ps lists the pods", "pod %s is being started or removed by another podrun", p.Name)
}
