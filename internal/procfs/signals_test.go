package procfs

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestHandles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "status")
	for text, want := range map[string]bool{
		"SigBlk:\t0000000000000000\nSigIgn:\t0000000000004000\nSigCgt:\t0000000000000000\n": false,
		"SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\nSigCgt:\t0000000000004000\n": true,
		"SigBlk:\t0000000000004000\nSigIgn:\t0000000000000000\nSigCgt:\t0000000000000000\n": true,
		"SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\nSigCgt:\t0000000000002001\n": false,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Handles(file, unix.SIGTERM); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if err := os.WriteFile(file, []byte("Name:\tsh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Handles(file, unix.SIGTERM); err == nil {
		t.Error("a file without signals has a result")
	}
}
