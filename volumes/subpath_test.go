package volumes

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

// openVolume makes a volume beside a canary that must stay unreachable.
func openVolume(t testing.TB) (volume *os.File, path, outside string) {
	t.Helper()
	dir := t.TempDir()
	path, outside = filepath.Join(dir, "volume"), filepath.Join(dir, "outside")
	mkdir(t, path)
	must(t, os.Chmod(path, os.ModeSetgid|0o775))
	write(t, filepath.Join(outside, "canary"), "host")
	volume, err := openPath(path)
	must(t, err)
	t.Cleanup(func() { volume.Close() })
	return volume, path, outside
}

func TestOpenSubPath(t *testing.T) {
	testenv.NoLeaks(t)
	volume, path, outside := openVolume(t)
	write(t, filepath.Join(path, "dir", "file"), "inside")
	must(t, unix.Mkfifo(filepath.Join(path, "fifo"), 0o600))
	for name, target := range map[string]string{
		"in": "dir", "in2": "dir/../dir", "up": "..", "canary": "../outside/canary", "abs": outside, "root": "/",
		"self": "self", "proc": "/proc/self/root", "gone": "nothing", "above": "../gone",
	} {
		must(t, os.Symlink(target, filepath.Join(path, name)))
	}
	for _, tt := range []struct {
		sub string
		err error // nil: it is opened
	}{
		{"dir", nil}, {"dir/file", nil}, {"./dir//file", nil}, {"fifo", nil}, {"in/file", nil}, {"in2/file", nil},
		{"new", nil}, {"in/a/b/c", nil}, {"dir/", nil},
		{"/dir", errEscape}, {"..", errEscape}, {"dir/..", errEscape}, {"../outside", errEscape},
		{"up", errEscape}, {"up/outside", errEscape}, {"canary", errEscape}, {"abs", errEscape}, {"abs/canary", errEscape},
		{"root", errEscape}, {"root/etc", errEscape}, {"proc", errEscape}, {"above", errEscape}, {"up/gone/new", errEscape},
		{"self", unix.ELOOP}, {"dir/file/x", unix.ENOTDIR}, {"gone", unix.ENOENT}, {"gone/x", unix.ENOENT},
	} {
		f, err := OpenSubPath(volume, tt.sub)
		if !errors.Is(err, tt.err) {
			t.Errorf("%q: %v, want %v", tt.sub, err, tt.err)
		}
		if err == nil {
			f.Close()
		}
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
		t.Errorf("outside the volume: %v, %v", left, err)
	}
	wantMissing(t, filepath.Join(filepath.Dir(path), "gone"))
	wantMode(t, filepath.Join(path, "new"), os.ModeSetgid|0o775)
	wantMode(t, filepath.Join(path, "dir", "a", "b", "c"), os.ModeSetgid|0o775)
}

// swapRounds is how often a race is run; scripts/torture sets a larger number.
func swapRounds(t testing.TB) int {
	n, err := strconv.Atoi(os.Getenv("PODRUN_RACES"))
	if err != nil {
		n = 200
	}
	return n
}

// exchange swaps two names continuously until the test ends.
func exchange(t testing.TB, a, b string) {
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
		}
	}()
	t.Cleanup(func() { stop.Store(true); <-done })
}

// A sibling swaps a directory of the volume for a link to the host, in the middle and at the end of
// the path (CVE-2017-1002101, CVE-2021-25741): the opened file is never the host's, and nothing is
// made there.
func TestSubPathRaces(t *testing.T) {
	for _, sub := range []string{"d", "d/e", "d/new/deep"} {
		t.Run(sub, func(t *testing.T) {
			testenv.NoLeaks(t)
			volume, path, outside := openVolume(t)
			mkdir(t, filepath.Join(path, "d", "e"))
			mkdir(t, filepath.Join(outside, "e"))
			write(t, filepath.Join(outside, "e", "canary"), "host")
			must(t, os.Symlink("../outside", filepath.Join(path, "evil")))
			stage := filepath.Join(t.TempDir(), "stage")
			exchange(t, filepath.Join(path, "d"), filepath.Join(path, "evil"))
			opened := 0
			deadline := time.Now().Add(time.Minute)
			for round := 0; round < swapRounds(t) || opened == 0 && time.Now().Before(deadline); round++ {
				f, err := OpenSubPath(volume, sub)
				if err != nil {
					continue
				}
				opened++
				must(t, Bind(f, filepath.Join(stage, "0")))
				f.Close()
				if _, err := os.Lstat(filepath.Join(stage, "0", "canary")); err == nil {
					t.Fatal("the host's directory is bound")
				}
				must(t, UnmountBelow(stage))
			}
			if left, err := os.ReadDir(outside); err != nil || len(left) != 2 {
				t.Errorf("outside the volume: %v, %v", left, err)
			}
			if opened == 0 {
				t.Error("it was never opened: the race was not run")
			}
		})
	}
}

func TestBind(t *testing.T) {
	testenv.NoLeaks(t)
	_, path, _ := openVolume(t)
	write(t, filepath.Join(path, "file"), "x")
	mkdir(t, filepath.Join(path, "mount"))
	must(t, MountTmpfs(filepath.Join(path, "mount"), 1<<20, 0o755, ""))
	t.Cleanup(func() { must(t, Unmount(filepath.Join(path, "mount"))) })
	write(t, filepath.Join(path, "mount", "f"), "deep")
	stage := filepath.Join(t.TempDir(), "a", "stage")
	for i, name := range []string{".", "file"} {
		f, err := openPath(filepath.Join(path, name))
		must(t, err)
		target := filepath.Join(stage, strconv.Itoa(i))
		must(t, Bind(f, target))
		if err := Bind(f, target); !errors.Is(err, os.ErrExist) {
			t.Errorf("a second time: %v", err)
		}
		f.Close()
	}
	wantFile(t, filepath.Join(stage, "0", "mount", "f"), "deep")
	wantFile(t, filepath.Join(stage, "1"), "x")
	must(t, UnmountBelow(stage))
	must(t, UnmountBelow(stage))
	wantFile(t, filepath.Join(path, "mount", "f"), "deep")
	wantFile(t, filepath.Join(path, "file"), "x")
}
