package cgroups

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/delegation"
	"github.com/podrun/podrun/internal/testenv"
)

// subtree returns the real subtree, or skips the test with the reason.
func subtree(t *testing.T) Subtree {
	t.Helper()
	testenv.NoLeaks(t)
	var s Subtree
	testenv.NeedVM(t, func() (err error) {
		if s, err = Delegated(); err != nil {
			return err
		}
		return delegation.Subtree(s).Lacks("cpu", "memory", "pids")
	})
	return s
}

func createPod(t *testing.T, s Subtree, l Limits) *Pod {
	t.Helper()
	p, err := s.CreatePod(podName(t), l, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Remove(); err != nil {
			t.Error(err)
		}
		gone(t, p.Path())
	})
	return p
}

func podName(t *testing.T) string {
	return fmt.Sprintf("podrun-test-%d-%s", os.Getpid(), strings.ReplaceAll(t.Name(), "/", "-"))
}

func gone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", path, err)
	}
}

// files reads values from the kernel.
func files(t *testing.T, dir string, names ...string) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got[name] = strings.TrimSuffix(string(b), "\n")
	}
	return got
}

func play(part string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), partEnv+"="+part)
	return cmd
}

// start runs a part in a child cgroup of the pod, as a container would.
func start(t *testing.T, p *Pod, container, part string) *exec.Cmd {
	t.Helper()
	cmd := play(part)
	enter(t, p, container, cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func enter(t *testing.T, p *Pod, container string, cmd *exec.Cmd) {
	t.Helper()
	dir := delegation.Mount + p.ContainerPath(container)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd()), Pdeathsig: syscall.SIGKILL}
}

// killed waits until SIGKILL has ended the process.
func killed(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	timer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	err := cmd.Wait()
	if !timer.Stop() {
		t.Fatal("the process was not killed in a minute")
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
		t.Fatalf("the process ended with %v, not by SIGKILL", err)
	}
}
