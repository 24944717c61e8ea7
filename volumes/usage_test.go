package volumes

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

// du returns the count of the system's own du.
func du(t *testing.T, unit, path string) int64 {
	t.Helper()
	out, err := exec.Command("du", "-sx", unit, path).Output()
	if err != nil {
		t.Fatalf("du: %v", err)
	}
	n, err := strconv.ParseInt(strings.Fields(string(out))[0], 10, 64)
	must(t, err)
	return n
}

func TestUsageIsWhatDuSays(t *testing.T) {
	big := strings.Repeat("x", 100_000)
	for _, tt := range []struct {
		name string
		make func(t *testing.T, path string)

		names int64 // of a file, beyond its first
	}{
		{name: "an empty directory", make: func(*testing.T, string) {}},
		{name: "files and directories", make: func(t *testing.T, path string) {
			for i := range 3 * fewNames {
				write(t, filepath.Join(path, fmt.Sprint(i%7), fmt.Sprint(i)), big[:i*100])
			}
		}},
		{name: "a sparse file", make: func(t *testing.T, path string) {
			write(t, filepath.Join(path, "f"), "x")
			must(t, os.Truncate(filepath.Join(path, "f"), 1<<40))
		}},
		{name: "a file with many names", make: func(t *testing.T, path string) {
			write(t, filepath.Join(path, "f"), big[:64<<10])
			for i := range 15 { // with its first, a power of two: no rounding
				must(t, os.Link(filepath.Join(path, "f"), filepath.Join(path, fmt.Sprint(i))))
			}
		}, names: 15},
		{name: "links to the outside", make: func(t *testing.T, path string) {
			outside := t.TempDir()
			write(t, filepath.Join(outside, "f"), big)
			must(t, os.Symlink(outside, filepath.Join(path, "dir")))
			must(t, os.Symlink("/", filepath.Join(path, "root")))
			must(t, os.Symlink(filepath.Join(outside, "f"), filepath.Join(path, "f")))
		}},
		{name: "a loop of links, pipes and closed directories", make: func(t *testing.T, path string) {
			must(t, os.Symlink("loop", filepath.Join(path, "loop")))
			must(t, unix.Mkfifo(filepath.Join(path, "fifo"), 0))
			write(t, filepath.Join(path, "d", "f"), big)
			must(t, os.Chmod(filepath.Join(path, "d"), 0))
		}},
		{name: "a mount", make: func(t *testing.T, path string) {
			mkdir(t, filepath.Join(path, "m"))
			must(t, MountTmpfs(filepath.Join(path, "m"), 1<<20, 0o777, ""))
			t.Cleanup(func() { must(t, Unmount(filepath.Join(path, "m"))) })
			write(t, filepath.Join(path, "m", "f"), big)
		}},
		{name: "a name that no terminal should see", make: func(t *testing.T, path string) {
			write(t, filepath.Join(path, "\x1b[2J\n-rf *"), big)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testenv.NoLeaks(t)
			path := filepath.Join(t.TempDir(), "top")
			mkdir(t, path)
			tt.make(t, path)
			got, err := Usage(path)
			must(t, err)
			if want := du(t, "--block-size=1", path); got.Bytes != want {
				t.Errorf("got %d bytes, du says %d", got.Bytes, want)
			}
			if want := du(t, "--inodes", path) + tt.names; got.Inodes != want {
				t.Errorf("got %d inodes, du says %d", got.Inodes, want)
			}
		})
	}
}

func TestUsageOfNothing(t *testing.T) {
	if n, err := Usage(filepath.Join(t.TempDir(), "none")); n != (Count{}) || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

func TestUsageOfADeepTree(t *testing.T) {
	testenv.NoLeaks(t)
	path := t.TempDir()
	deep := path + strings.Repeat("/d", maxDepth-1)
	mkdir(t, deep)
	if _, err := Usage(path); err != nil {
		t.Errorf("%d levels: %v", maxDepth, err)
	}
	mkdir(t, deep+"/d")
	if _, err := Usage(path); !errors.Is(err, ErrTooDeep) {
		t.Errorf("%d levels: %v", maxDepth+1, err)
	}
}

// A container may replace files of any type by others during the count.
func TestUsageOfAChangingTree(t *testing.T) {
	testenv.NoLeaks(t)
	path := t.TempDir()
	outside := filepath.Join(path, "outside")
	write(t, filepath.Join(outside, "f"), strings.Repeat("x", 8<<20))
	top := filepath.Join(path, "top")
	mkdir(t, filepath.Join(top, "real"))
	write(t, filepath.Join(top, "real", "f"), "x")
	must(t, os.Symlink(outside, filepath.Join(top, "link")))
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			unix.Renameat2(unix.AT_FDCWD, filepath.Join(top, "real"), unix.AT_FDCWD, filepath.Join(top, "link"), unix.RENAME_EXCHANGE)
			os.RemoveAll(filepath.Join(top, "gone"))
			os.MkdirAll(filepath.Join(top, "gone", "a", "b"), 0o755)
		}
	}()
	for range 500 {
		n, err := Usage(top)
		if err != nil || n.Bytes > 1<<20 {
			t.Errorf("counted %+v, %v", n, err)
			break
		}
	}
	stop.Store(true)
	<-done
}

func BenchmarkUsage(b *testing.B) {
	path := b.TempDir()
	for i := range 10_000 {
		write(b, filepath.Join(path, fmt.Sprint(i%100), fmt.Sprint(i)), "")
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Usage(path); err != nil {
			b.Fatal(err)
		}
	}
}
