package store

import (
	"os"
	"sync"
	"testing"
)

// A process that waits for a pod's name gets a complete directory, and the removal does not fail
// because of it.
func TestRemovedPodsNameIsTakenAtOnce(t *testing.T) {
	p := testDirs(t).Pod("default", "web")
	turn := func() error {
		lock, err := p.WaitLock()
		if err != nil {
			return err
		}
		defer lock.Close()
		if err := os.WriteFile(p.endpointFile(), nil, 0o600); err != nil {
			return err
		}
		if _, err := os.Stat(p.endpointFile()); err != nil {
			return err
		}
		return p.Remove()
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				if err := turn(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
