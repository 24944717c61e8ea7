package runner

import (
	"os"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
)

// TestEntry: the way into a container is opened once, and only if it is its process still.
func TestEntry(t *testing.T) {
	testenv.NoLeaks(t)
	st, ok := stat(os.Getpid())
	if !ok {
		t.Fatal("no process")
	}
	var e entry
	if _, err := e.open(process{st.PID, st.Start + 1}); err == nil {
		t.Error("another process of the same number is taken for it")
	}
	first, err := e.open(st.process)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := e.open(st.process); err != nil || again != first {
		t.Errorf("opened again: %v %v", again, err)
	}
	e.close()
}
