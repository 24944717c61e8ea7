package image

import (
	"context"
	"errors"
	"path/filepath"
	"sync"

	"github.com/podrun/podrun/internal/store"
)

// adder adds images to a store. It shares the store's lock, and so do its
// children, so that nobody frees layers or clears the staging directory meanwhile.
type adder struct {
	s    *ingestStore
	lock *store.FileLock

	mu   sync.Mutex // around tell
	tell func(Progress)
}

// begin starts adding. If nobody else is at work, what a killed one left behind is
// removed first. tell may be nil.
func (s *ingestStore) begin(ctx context.Context, tell func(Progress)) (*adder, error) {
	lock, err := s.lock()
	if err != nil {
		return nil, err
	}
	spread(filepath.Join(s.dir, stagingDir))
	a := &adder{s: s, lock: lock, tell: tell}
	if err := a.clean(ctx); err != nil {
		lock.Close()
		return nil, err
	}
	return a, nil
}

// end lets others clean the store again.
func (a *adder) end() { a.lock.Close() }

// clean leaves the lock shared. Whatever is in staging/ while the lock is held
// alone has no owner; names in there are never used twice, so that it may be
// removed with the lock shared again.
func (a *adder) clean(ctx context.Context) error {
	alone, err := a.lock.TryExclusive()
	if err != nil {
		return err
	}
	if !alone {
		return wait(ctx, a.lock.Shared)
	}
	rubbish, err := a.s.rubbish()
	if err != nil {
		return err
	}
	if err := a.lock.Shared(); err != nil {
		return err
	}
	return removeTrees(rubbish)
}

// report tells of progress, one call at a time.
func (a *adder) report(p Progress) {
	if a.tell == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tell(p)
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
