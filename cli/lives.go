package cli

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/podrun/podrun/internal/store"
)

// livesTime is between two looks which pods live.
const livesTime = time.Second

// lives tells those who watch that other pods live than before: of a pod that is killed, guard
// and all, no file tells.
type lives struct {
	dirs store.Dirs

	mu    sync.Mutex
	seen  string        // the pods that lived when they were looked at
	other chan struct{} // closed when others live now
}

func newLives(dirs store.Dirs) *lives { return &lives{dirs: dirs, other: make(chan struct{})} }

// poked is closed when other pods live than when note was called last.
func (l *lives) poked() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.other
}

// note says that pods are looked at now. It comes before the look: who dies after that is
// missed, which check sees.
func (l *lives) note() error {
	living, err := l.living()
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = living
	return nil
}

// check looks whether others live now.
func (l *lives) check() {
	living, err := l.living()
	if err != nil {
		return // who looks at the pods hears of it
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if living != l.seen {
		close(l.other)
		l.other = make(chan struct{})
	}
}

// watch checks now and then, until ctx ends.
func (l *lives) watch(ctx context.Context) {
	tick := time.NewTicker(livesTime)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.check()
		case <-ctx.Done():
			return
		}
	}
}

// living names the pods that live.
func (l *lives) living() (string, error) {
	places, err := l.dirs.Pods()
	if err != nil {
		return "", err
	}
	var names []string
	for _, p := range places {
		if p.Alive() {
			names = append(names, p.Namespace+"/"+p.Name)
		}
	}
	return strings.Join(names, " "), nil
}
