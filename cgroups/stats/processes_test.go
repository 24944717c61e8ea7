package stats

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

func TestProcesses(t *testing.T) {
	args := []string{"sh", "-c", "while :; do :; done; : " + t.Name()}
	cmd := exec.Command("/bin/sh")
	cmd.Args = args
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	var before, after Sample
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		all, err := ReadProcesses()
		if err != nil {
			t.Fatal(err)
		}
		pid, ok := all.Find(func(got []string) bool { return slices.Equal(got, args) })
		if !ok {
			continue // it still runs the test's program
		}
		if pid != cmd.Process.Pid || !slices.Contains(all.Below(os.Getpid()), pid) {
			t.Fatalf("found %d, not %d, in %v", pid, cmd.Process.Pid, all.Below(os.Getpid()))
		}
		after = all.Sum([]int{pid})
		if before.CPU == nil {
			before = after
		}
		if n := CPUBetween(before, after); n != nil && *n > 0 {
			break
		}
	}
	if n := CPUBetween(before, after); n == nil || *n == 0 {
		t.Errorf("a busy loop used no time: %+v, %+v", before, after)
	}
	if after.Memory == nil || *after.Memory == 0 || after.Pids == nil || *after.Pids != 1 || after.Read != nil {
		t.Errorf("%+v", after)
	}
}
