package execshim

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// Wait returns a process's status; until then Signal reaches the process.
func TestProcess(t *testing.T) {
	start := func(script string) *Process {
		t.Helper()
		cmd := exec.Command("/bin/sh", "-c", script)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		p, err := newProcess(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Release(); err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := start("exit 7")
	if status, err := p.Wait(); err != nil || status.ExitStatus() != 7 {
		t.Errorf("%v, %v", status, err)
	}
	if err := p.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a signal to a process that has been waited for: %v", err)
	}
	p = start("exec sleep 1000")
	ended := make(chan syscall.WaitStatus)
	go func() {
		status, _ := p.Wait()
		ended <- status
	}()
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if status := <-ended; !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("%v", status)
	}
	if _, err := newProcess(p.pid); err == nil {
		t.Error("a process that has been reaped is found")
	}
}
