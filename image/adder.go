package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/podrun/podrun/internal/stage"
	"github.com/podrun/podrun/internal/store"
)

// adder adds images to a store. It shares the store's lock, and so do its
// children, so that nobody frees layers or clears the staging directory meanwhile.
type adder struct {
	s    *Store
	lock *store.FileLock

	mu   sync.Mutex // around tell
	tell func(Progress)
}

// Hold keeps every layer in the store until the result is closed: between finding
// an image and recording a pod that uses it, no Remove may free its layers.
func (s *Store) Hold() (io.Closer, error) {
	lock, err := s.lock()
	if err != nil {
		return nil, err
	}
	if err := lock.Shared(); err != nil {
		lock.Close()
		return nil, err
	}
	return lock, nil
}

// begin starts adding. If nobody else is at work, what a killed one left behind is
// removed first. tell may be nil.
func (s *Store) begin(ctx context.Context, tell func(Progress)) (*adder, error) {
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
	return a.s.removeTrees(rubbish)
}

// rubbish lists the directories in staging/ and removes the locks of layers. The
// store's lock is held alone.
func (s *Store) rubbish() ([]string, error) {
	staging := filepath.Join(s.dir, stagingDir)
	entries, err := os.ReadDir(staging)
	if err != nil {
		return nil, fmt.Errorf("clean image store: %w", err)
	}
	var dirs []string
	for _, e := range entries {
		path := filepath.Join(staging, e.Name())
		if e.IsDir() {
			dirs = append(dirs, path)
		} else if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("clean image store: %w", err)
		}
	}
	retired, err := s.retired(func(string) bool { return true })
	return append(dirs, retired...), err
}

// removeTrees removes directories with files of the user's subordinate ids.
func (s *Store) removeTrees(dirs []string) error {
	if len(dirs) == 0 {
		return nil
	}
	cmd := stage.Command(stage.Spec{Name: removeStage, Args: dirs, Userns: true, Net: true})
	bare(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("remove layers: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// bare takes the user's environment from a stage, which has no use for it.
func bare(cmd *exec.Cmd) {
	var own []string
	for _, kv := range cmd.Env {
		if strings.HasPrefix(kv, "_PODRUN_") {
			own = append(own, kv)
		}
	}
	cmd.Env = own
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
