package ingest

import (
	"context"
	"errors"
	"path/filepath"
	"sync"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/layer"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/internal/store"
)

// Tx adds images to a store. It shares the store's lock, and so do its
// children, so that nobody frees layers or clears the staging directory meanwhile.
type Tx struct {
	Store *Ingester
	lock  *store.FileLock

	mu       sync.Mutex // around tell
	progress func(api.Progress)
}

// Begin starts adding. If nobody else is at work, what a killed one left behind is
// removed first. tell may be nil.
func (s *Ingester) Begin(ctx context.Context, tell func(api.Progress)) (*Tx, error) {
	lock, err := s.Lock()
	if err != nil {
		return nil, err
	}
	hintPlacement(filepath.Join(s.Dir, records.StagingDir))
	a := &Tx{Store: s, lock: lock, progress: tell}
	if err := a.clean(ctx); err != nil {
		lock.Close()
		return nil, err
	}
	return a, nil
}

// End lets others clean the store again.
func (a *Tx) End() { a.lock.Close() }

// clean leaves the lock shared. Whatever is in staging/ while the lock is held
// alone has no owner; names in there are never used twice, so that it may be
// removed with the lock shared again.
func (a *Tx) clean(ctx context.Context) error {
	alone, err := a.lock.TryExclusive()
	if err != nil {
		return err
	}
	if !alone {
		return wait(ctx, a.lock.Shared)
	}
	rubbish, err := a.Store.StaleStaging()
	if err != nil {
		return err
	}
	if err := a.lock.Shared(); err != nil {
		return err
	}
	return layer.RemoveTrees(rubbish)
}

// reportProgress tells of progress, one call at a time.
func (a *Tx) reportProgress(p api.Progress) {
	if a.progress == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.progress(p)
}

// wait runs a lock's blocking call and gives up when ctx ends. A call that was
// given up ends by itself, with the process at the latest.
func wait(ctx context.Context, lock func() error) error {
	done := make(chan error, 1)
	go func() { done <- lock() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errors.Join(errors.New("wait for another podrun"), ctx.Err())
	}
}
