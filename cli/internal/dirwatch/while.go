package dirwatch

import (
	"context"
	"slices"
)

// While calls look, and again whenever something changes in the directories that
// watched gives, or what poked gives is closed, until look wants no more or ctx ends.
func While(ctx context.Context, watched func() ([]string, error), poked func() <-chan struct{}, look func() (more bool, err error)) error {
	for {
		dirs, err := watched()
		if err != nil {
			return err
		}
		watcher := Watch(dirs...)
		more, err := whileSame(ctx, watcher, dirs, watched, poked, look)
		watcher.Close()
		if err != nil || !more {
			return err
		}
	}
}

// whileSame looks until other directories are to be watched.
func whileSame(ctx context.Context, watcher *Watcher, dirs []string, watched func() ([]string, error), poked func() <-chan struct{}, look func() (bool, error)) (more bool, err error) {
	for {
		news := poked()
		// Everything is looked at once more after the watching has begun: nothing that
		// happened in between is missed.
		if more, err := look(); err != nil || !more {
			return false, err
		}
		now, err := watched()
		if err != nil {
			return false, err
		}
		if !slices.Equal(now, dirs) {
			return true, nil
		}
		select {
		case <-watcher.Any():
		case <-news:
		case <-ctx.Done():
			return false, nil
		}
	}
}
