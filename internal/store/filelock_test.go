package store

import (
	"path/filepath"
	"testing"
)

// TestHeld: a lock that is only asked about stays free.
func TestHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *FileLock {
		l, err := OpenFileLock(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	check := func(l *FileLock, want bool) {
		t.Helper()
		if held, err := l.Held(); err != nil || held != want {
			t.Errorf("held %v, %v", held, err)
		}
	}
	reader, holder := open(), open()
	check(reader, false)
	if free, err := holder.TryExclusive(); err != nil || !free {
		t.Fatalf("free %v, %v", free, err)
	}
	check(reader, true)
	check(holder, false) // its own is not another's
	holder.Close()
	check(reader, false)
}
