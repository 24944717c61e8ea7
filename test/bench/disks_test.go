package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nsthread"
)

func TestMiBRead(t *testing.T) {
	if got, err := mibRead("     812      11    4096      120        7        0       56        2\n"); got != 2 || err != nil {
		t.Errorf("%v, %v, want 2", got, err)
	}
	for _, bad := range []string{"", "1 2", "1 2 x"} {
		if got, err := mibRead(bad); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

// podman looks first where the helper programs on the disk are.
func TestConfigureHelpers(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "config"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := (&podman{helpers: "/disk"}).configure(dir); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "config/containers/containers.conf"))
	for _, want := range []string{"conmon_path = [\"/disk/conmon\"]\n", "helper_binaries_dir = [\"/disk\", \"/usr/local/libexec/podman\""} {
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%q, %v: no %q", b, err, want)
		}
	}
}

// A sync of a thread waits for the answer, which comes later; the error of the call stays.
func TestDelaySyncs(t *testing.T) {
	var pipe [2]int // whose fsync fails at once
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	err := nsthread.Do(func() error {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil { // an ordinary user may install a filter then
			return err
		}
		if err := delaySyncs(); err != nil {
			return err
		}
		for _, call := range []func(int) error{unix.Fsync, unix.Fdatasync} {
			start := time.Now()
			if err := call(pipe[0]); err != unix.EINVAL {
				t.Errorf("a sync of a pipe: %v, want %v", err, unix.EINVAL)
			}
			if took := time.Since(start); took < slowSync {
				t.Errorf("a sync took %v, less than %v", took, slowSync)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A file in memory has no disk to wait for.
func TestInMemory(t *testing.T) {
	fd, err := unix.MemfdCreate("memory", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	root, err := unix.Open("/proc", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root)
	pid := uint32(os.Getpid())
	for _, c := range []struct {
		call uint32
		fd   int
		want bool
	}{{unix.SYS_FSYNC, fd, true}, {unix.SYS_FSYNC, root, false}, {unix.SYS_SYNC, fd, false}, {unix.SYS_FSYNC, -1, false}} {
		call := syncCall{pid: pid, call: c.call, args: [6]uint64{uint64(uint32(c.fd))}}
		if got := call.inMemory(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
