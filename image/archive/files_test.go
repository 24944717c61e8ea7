package archive

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestFIFOWithoutWriter: an archive that is a FIFO to which no process writes is an error after a time.
func TestFIFOWithoutWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openInput(context.Background(), path, time.Millisecond); err == nil || !strings.Contains(err.Error(), "no process has written to the FIFO") {
		t.Errorf("%v", err)
	}
}
