package programs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/store"
)

// libexec makes a directory with a newer and an older version's programs and other files. The older
// supervisor is a program that can run.
func libexec(t *testing.T, now time.Time) (dir string, own []string) {
	t.Helper()
	dir = t.TempDir()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"podrun-supervisor-new", "podrun-netstack-new", "podrun-supervisor-old", "podrun-init-old", "podrun-netstack-old", "podrun-fastpath-old", "podrun-image-old", "podrun-quick-old", "others"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, program, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, now.Add(-2*keepUnused)); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "-new") {
			own = append(own, path)
		}
	}
	return dir, own
}

func left(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != ".lock" {
			names = append(names, e.Name())
		}
	}
	return names
}

var (
	all    = []string{"others", "podrun-fastpath-old", "podrun-image-old", "podrun-init-old", "podrun-netstack-new", "podrun-netstack-old", "podrun-quick-old", "podrun-supervisor-new", "podrun-supervisor-old"}
	remain = []string{"others", "podrun-netstack-new", "podrun-supervisor-new"}
)

func lockOf(t *testing.T, dir string) *store.FileLock {
	t.Helper()
	lock := inUse(filepath.Join(dir, ".lock"))
	if lock == nil {
		t.Fatal("the lock cannot be had")
	}
	t.Cleanup(func() { lock.Close() })
	return lock
}

// Another version's programs are removed, and nothing else, once no process runs any of them.
func TestRemoveOld(t *testing.T) {
	now := time.Now()
	dir, own := libexec(t, now)
	lock := lockOf(t, dir)
	running := exec.Command(filepath.Join(dir, "podrun-supervisor-old"), "1000")
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	err := removeUnused(dir, own, lock, now)
	if got := left(t, dir); err != nil || !slices.Equal(got, all) {
		t.Errorf("while one of them runs there is %v left, %v", got, err)
	}
	running.Process.Kill()
	running.Wait()
	err = removeUnused(dir, own, lock, now)
	if got := left(t, dir); err != nil || !slices.Equal(got, remain) {
		t.Errorf("%v is left, %v, want %v", got, err, remain)
	}
	// The lock is shared afterwards.
	if other := lockOf(t, dir); other.Shared() != nil {
		t.Error("nobody else can share the lock")
	}
}

// A command that may be about to execute a program prevents its removal.
func TestRemoveOldWhileOneStarts(t *testing.T) {
	now := time.Now()
	dir, own := libexec(t, now)
	starting := lockOf(t, dir)
	lock := lockOf(t, dir)
	if err := removeUnused(dir, own, lock, now); err != nil {
		t.Fatal(err)
	}
	if got := left(t, dir); !slices.Equal(got, all) {
		t.Errorf("%v is left", got)
	}
	starting.Close()
	if err := removeUnused(dir, own, lock, now); err != nil {
		t.Fatal(err)
	}
	if got := left(t, dir); !slices.Equal(got, remain) {
		t.Errorf("%v is left, want %v", got, remain)
	}
}

// A program stays for a day; a clock that was set back removes nothing.
func TestRemoveOldTooSoon(t *testing.T) {
	now := time.Now()
	dir, own := libexec(t, now)
	lock := lockOf(t, dir)
	for _, at := range []time.Time{now.Add(-keepUnused - time.Minute), now.Add(-100 * keepUnused)} {
		if err := removeUnused(dir, own, lock, at); err != nil {
			t.Fatal(err)
		}
		if got := left(t, dir); !slices.Equal(got, all) {
			t.Errorf("%v is left", got)
		}
	}
}

// Without a lock nothing is removed, and stopping pods still works.
func TestInUseWithoutALock(t *testing.T) {
	if lock := inUse(filepath.Join(t.TempDir(), "none", ".lock")); lock != nil {
		t.Error("a lock in no directory")
	}
}
