package dirwatch

import (
	"path/filepath"
	"testing"
	"time"
)

// TestWatchFallsBack checks that followers are woken by a timer if directories cannot be watched.
func TestWatchFallsBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there")
	w := Watch(dir)
	t.Cleanup(w.Close)
	if w.notify != nil {
		t.Fatal("a directory that is not there was watched")
	}
	select {
	case <-w.Wake(dir):
	case <-time.After(time.Minute):
		t.Error("nobody was woken")
	}
}
