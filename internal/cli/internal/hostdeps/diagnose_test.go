package hostdeps

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/testenv"
)

// TestTryOnce checks that a pod's namespaces are tried once per boot, and that only the mark stays.
func TestTryOnce(t *testing.T) {
	testenv.Need(t, testenv.Pods)
	base := t.TempDir()
	dirs := store.Dirs{Data: filepath.Join(base, "data"), Runtime: filepath.Join(base, "run")}
	for _, d := range []string{dirs.Data, dirs.Runtime} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	mark, err := dirs.OverlayMark()
	if err != nil {
		t.Fatal(err)
	}
	marked := func() bool {
		_, err := os.Stat(mark)
		return err == nil
	}

	// What cannot be tried is left to the supervisor.
	if err := os.Chmod(dirs.Data, 0o500); err != nil {
		t.Fatal(err)
	}
	if err := (Deps{}).TryPod(t.Context(), dirs); err != nil || marked() {
		t.Errorf("tried nothing: %v, marked: %v", err, marked())
	}
	if err := os.Chmod(dirs.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := (Deps{}).TryPod(t.Context(), dirs); err != nil || !marked() {
		t.Errorf("tried: %v, marked: %v", err, marked())
	}
	if left, err := os.ReadDir(dirs.Data); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	// With the mark nothing is tried, not even the directory is looked into.
	if err := os.Chmod(dirs.Data, 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dirs.Data, 0o700)
	if err := (Deps{}).TryPod(t.Context(), dirs); err != nil {
		t.Errorf("tried again: %v", err)
	}
}

// TestTryTogether checks that only one of several commands that start together, as the units after a boot, tries a pod's
// namespaces.
func TestTryTogether(t *testing.T) {
	testenv.Need(t, testenv.Pods)
	dirs := store.Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(watch)
	if _, err := unix.InotifyAddWatch(watch, dirs.Data, unix.IN_CREATE); err != nil {
		t.Fatal(err)
	}
	var commands sync.WaitGroup
	for range 4 {
		commands.Go(func() {
			if err := (Deps{}).TryPod(t.Context(), dirs); err != nil {
				t.Error(err)
			}
		})
	}
	commands.Wait()
	events := make([]byte, 1<<16)
	n, err := unix.Read(watch, events)
	if err != nil {
		t.Fatal(err)
	}
	if trials := bytes.Count(events[:n], []byte(".podrun-trial-")); trials != 1 {
		t.Errorf("%d trials", trials)
	}
}

func TestLowestDir(t *testing.T) {
	base := t.TempDir()
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		base: base, base + "/no/such": base, file + "/x": base, "/nosuch/x": "/",
	} {
		if got := lowestDir(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// TestManager checks that a service manager that answers, and a missing one, are OK.
func TestManager(t *testing.T) {
	if f := managerFinding(t.Context()); f.Detail == "" || (f.Level == host.OK) != (f.Hint == "") {
		t.Errorf("got %+v", f)
	}
}

// TestManagerTimeout checks that a service manager that does not answer is a warning after a timeout.
func TestManagerTimeout(t *testing.T) {
	dir, err := os.MkdirTemp("", "run-") // short: a socket's path has 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Mkdir(filepath.Join(dir, "systemd"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "systemd/private"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	f := managerFinding(ctx)
	if f.Level != host.Warning || !strings.HasSuffix(f.Detail, "it does not answer") || f.Hint == "" || time.Since(start) > time.Minute {
		t.Errorf("after %v: %+v", time.Since(start), f)
	}
}
