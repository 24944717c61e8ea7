package container

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/testenv"
)

// TestEntry: the pidfd of a container is opened once, and only for exactly its process; a caller's copy
// stays valid when the container is removed.
func TestEntry(t *testing.T) {
	testenv.NoLeaks(t)
	st, ok := procfs.Lookup(os.Getpid())
	if !ok {
		t.Fatal("no process")
	}
	var e pidfdCache
	if _, err := e.open(procfs.Process{PID: st.PID, StartTime: st.StartTime + 1}); err == nil {
		t.Error("another process of the same number is taken for it")
	}
	first, err := e.open(st.Process)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	again, err := e.open(procfs.Process{PID: st.PID, StartTime: st.StartTime + 1})
	if err != nil {
		t.Fatalf("looked for again: %v", err)
	}
	again.Close()
	e.close()
	if err := unix.PidfdSendSignal(int(first.Fd()), 0, nil, 0); err != nil {
		t.Errorf("what was opened has gone with the container: %v", err)
	}
}
