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
		if err := untilGone(ctx, p, pollTime); err != nil {
			return nil, err
		}
	}
}

// busy is the error of a pod that another command is making or removing.
func busy(p store.Pod) error {
	return report.New(report.Failure, "try again when that is done; podrun ps lists the pods", "pod %s is being started or removed by another podrun", p.Name)
}

// vacate locks a pod's place and removes what an earlier pod of the name, which
// has ended or was killed, has left there.
func (l *launch) vacate(p store.Pod) (*os.File, error) {
	old := traces(p)
	lock, err := p.Lock()
	if err != nil || !old {
		return lock, err
	}
	err = l.keeper.remove(p) // and with it the lock's file
	lock.Close()
	if err != nil {
		return nil, err
	}
	return p.Lock()
}
