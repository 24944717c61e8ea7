package procfs_test // testenv leads to procfs

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/procfs"
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
	testenv.WithDescriptors(t, 0, func() { err = procfs.Process{PID: cmd.Process.Pid}.SignalUnreaped(unix.SIGKILL) })
	if err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("it has ended with %v", err)
	}
}

func TestParseStat(t *testing.T) {
	got, err := procfs.ParseStat(7, "7 (a) R 1 (b) S 3 7 7 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 5 0 99 1 2 3")
	if want := (procfs.Stat{Process: procfs.Process{7, 99}, Comm: "a) R 1 (b", State: 'S', PPID: 3, Threads: 5, Ticks: 100}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{"", ")", "1 (a) S 1"} {
		if s, err := procfs.ParseStat(1, text); err == nil {
			t.Errorf("%q: %+v", text, s)
		}
	}
}
