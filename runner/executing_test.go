package runner

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// A program that the kernel is long in executing, as where its file system does not answer,
// holds up nobody: its container counts as one that runs, and the pod can be stopped.
func TestAProgramThatIsLongExecuted(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	program := filepath.Join(l, "bin", "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	// Who opens a file with a lease waits until it is given up.
	lease, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Close()
	if _, err := unix.FcntlInt(lease.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Fatal(err)
	}
	c := shell(l, "a", "")
	c.Args = []string{"program"}
	begun := time.Now()
	p := start(t, newPlan(nil, []pod.Container{c}))
	p.running()
	if took := time.Since(begun); took < 10*time.Second {
		t.Errorf("it runs after %v: it did not have to wait", took)
	}
	if st := p.stop(0); st.Containers[0].State.Terminated == nil {
		t.Errorf("it has not ended: %+v", st)
	}
}
