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

// Tx is a transaction that adds images to a store. It and its child processes hold the store's lock shared,
// so no other process frees layers or clears the staging directory in between.
type Tx struct {
	Ingester *Ingester
	lock     *store.FileLock

	mu       sync.Mutex // protects the progress callback
	progress func(api.Progress)
}

// Begin starts a transaction. If no other process uses the store, it first removes what a killed process
// left behind. onProgress may be nil.
func (s *Ingester) Begin(ctx context.Context, onProgress func(api.Progress)) (*Tx, error) {
	lock, err := s.Lock()
	if err != nil {
		return nil, err
	}
	hintPlacement(filepath.Join(s.Dir, records.StagingDir))
	a := &Tx{Ingester: s, lock: lock, progress: onProgress}
	if err := a.clean(ctx); err != nil {
		lock.Close()
		return nil, err
	}
	return a, nil
}

// End releases the lock, so that other processes can clean the store.
func (a *Tx) End() { a.lock.Close() }

// clean removes stale staging directories and leaves the lock shared. While the lock is held exclusively,
// nothing in staging/ has an owner. Names in there are never reused, so they can be removed with the lock
// shared again.
func (a *Tx) clean(ctx context.Context) error {
	alone, err := a.lock.TryExclusive()
	if err != nil {
		return err
	}
	if !alone {
		return wait(ctx, a.lock.Shared)
	}
	stale, err := a.Ingester.StaleStaging()
	if err != nil {
		return err
	}
	if err := a.lock.Shared(); err != nil {
		return err
	}
	return layer.RemoveTrees(stale)
}

// reportProgress reports progress, one call at a time.
func (a *Tx) reportProgress(p api.Progress) {
	if a.progress == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.progress(p)
}

// wait runs a lock's blocking call and returns early if ctx ends. The abandoned call ends later by itself,
// at the latest with the process.
func wait(ctx context.Context, lock func() error) error {
	done := make(chan error, 1)
	go func() { done <- lock() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errors.Join(errors.New("wait for another podrun command"), ctx.Err())
	}
}
