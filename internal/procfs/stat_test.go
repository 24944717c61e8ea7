package procfs

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

// TestSignalWithoutDescriptors: a supervisor without free descriptors can kill its processes.
func TestSignalWithoutDescriptors(t *testing.T) {
	testenv.NoLeaks(t)
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var err error
	testenv.WithDescriptors(t, 0, func() { err = Process{PID: cmd.Process.Pid}.SignalUnreaped(unix.SIGKILL) })
	if err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("it has ended with %v", err)
	}
}
