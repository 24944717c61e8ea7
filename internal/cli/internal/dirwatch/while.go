package dirwatch

import (
	"context"
	"slices"
)

// While calls onChange once, and again at each change in the directories that watched returns or when the
// channel of refresh, which may be nil, is closed. It returns when onChange returns false or ctx ends.
func While(ctx context.Context, watched func() ([]string, error), refresh func() <-chan struct{}, onChange func() (more bool, err error)) error {
	for {
		dirs, err := watched()
		if err != nil {
			return err
		}
		watcher := Watch(dirs...)
		more, err := whileSame(ctx, watcher, dirs, watched, refresh, onChange)
		watcher.Close()
		if err != nil || !more {
			return err
		}
	}
}

// whileSame calls onChange until the set of watched directories changes.
func whileSame(ctx context.Context, watcher *Watcher, dirs []string, watched func() ([]string, error), refresh func() <-chan struct{}, onChange func() (bool, error)) (more bool, err error) {
	for {
		var news <-chan struct{}
		if refresh != nil {
			news = refresh()
		}
		// The first call is after the watch has started, so that no change in between is missed.
		if more, err := onChange(); err != nil || !more {
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
