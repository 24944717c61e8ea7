package volumes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

func TestRemoveTree(t *testing.T) {
	tests := []struct {
		name string
		make func(t *testing.T, path string)
	}{
		{"missing", func(*testing.T, string) {}},
		{"file", func(t *testing.T, path string) { write(t, path, "x") }},
		{"empty directory", func(t *testing.T, path string) { mkdir(t, path) }},
		{"tree", func(t *testing.T, path string) {
			for i := range 3 {
				for j := range 40 {
					write(t, filepath.Join(path, fmt.Sprint(i), fmt.Sprint(j), "f"), "x")
				}
			}
		}},
		{"more files than a batch", func(t *testing.T, path string) {
			for i := range 3*batch + 1 {
				write(t, filepath.Join(path, "d", fmt.Sprint(i)), "")
			}
		}},
		{"closed directories", func(t *testing.T, path string) {
			write(t, filepath.Join(path, "work", "work", "x", "f"), "x")
			for _, dir := range []string{"work/work/x", "work/work", "work", "."} {
				must(t, os.Chmod(filepath.Join(path, dir), 0))
			}
		}},
		{"files of other users", func(t *testing.T, path string) {
			write(t, filepath.Join(path, "d", "f"), "x")
			must(t, os.Chown(filepath.Join(path, "d"), 1000, 1000))
			must(t, os.Chmod(filepath.Join(path, "d"), 0o700|os.ModeSticky))
		}},
		{"special files", func(t *testing.T, path string) {
			mkdir(t, path)
			must(t, unix.Mkfifo(filepath.Join(path, "fifo"), 0))
			must(t, unix.Mknod(filepath.Join(path, "whiteout"), unix.S_IFCHR, 0))
			must(t, os.Symlink("/nowhere", filepath.Join(path, "link")))
		}},
		{"names that moved directories get", func(t *testing.T, path string) {
			for i := range 5 {
				write(t, filepath.Join(path, fmt.Sprintf(".rm%d", i), "a", "b", "f"), "x")
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			testenv.NoLeaks(t)
			path := filepath.Join(t.TempDir(), "tree")
			tt.make(t, path)
			must(t, RemoveTree(path))
			wantMissing(t, path)
		})
	}
}

func TestRemoveTreeStaysInside(t *testing.T) {
	testenv.NoLeaks(t)
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside", "f")
	write(t, outside, "canary")
	tree := filepath.Join(dir, "tree")
	mkdir(t, filepath.Join(tree, "a", "b"))
	for _, link := range []string{"link", "a/link", "a/b/link"} {
		must(t, os.Symlink(filepath.Dir(outside), filepath.Join(tree, link)))
	}
	must(t, RemoveTree(tree))
	wantFile(t, outside, "canary")

	t.Run("path is a link", func(t *testing.T) {
		link := filepath.Join(dir, "link")
		must(t, os.Symlink(filepath.Dir(outside), link))
		must(t, RemoveTree(link))
		wantFile(t, outside, "canary")
		wantMissing(t, link)
	})
}

// Without this check a leftover bind mount in a pod's directory would cost the host a directory.
func TestRemoveTreeEntersNoMount(t *testing.T) {
	for _, place := range []string{".", "m", "a/m", "a/b/c/m"} {
		t.Run(place, func(t *testing.T) {
			testenv.NoLeaks(t)
			dir := t.TempDir()
			outside := filepath.Join(dir, "outside", "sub", "f")
			write(t, outside, "canary")
			tree := filepath.Join(dir, "tree")
			target := filepath.Join(tree, place)
			mkdir(t, target)
			must(t, unix.Mount(filepath.Join(dir, "outside"), target, "", unix.MS_BIND, ""))
			t.Cleanup(func() { must(t, unmountBelow(dir)) })
			err := RemoveTree(tree)
			if err == nil || !strings.Contains(err.Error(), "busy") {
				t.Errorf("error %v, want one that says busy", err)
			}
			wantFile(t, outside, "canary")
		})
	}
}

// A container may nest directories deeper than descriptors or a path can follow.
func TestRemoveTreeOfAnyDepth(t *testing.T) {
	testenv.NoLeaks(t)
	var limit unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	few := limit
	few.Cur = 64
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &few))
	t.Cleanup(func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)) })

	top := filepath.Join(t.TempDir(), "top")
	mkdir(t, top)
	topFD, err := unix.Open(top, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	for range 5000 {
		must(t, unix.Mkdirat(topFD, "directory", 0o700))
		next, err := unix.Openat(topFD, "directory", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		must(t, err)
		unix.Close(topFD)
		topFD = next
	}
	unix.Close(topFD)
	must(t, RemoveTree(top))
	wantMissing(t, top)
}
