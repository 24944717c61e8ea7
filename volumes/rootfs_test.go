package volumes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/testenv"
)

// room returns a directory that can hold root file systems, and checks it for leaks.
func room(t testing.TB) string {
	t.Helper()
	testenv.NoLeaks(t)
	dir := t.TempDir()
	testenv.Need(t, func() error { return ProbeOverlay(dir) })
	return dir
}

// mount mounts layers until the test ends.
func mount(t testing.TB, dir string, layers []string, readOnly bool) string {
	t.Helper()
	root, err := MountRootfs(dir, layers, readOnly, "")
	must(t, err)
	t.Cleanup(func() { must(t, UnmountRootfs(dir)) })
	return root
}

func TestMountRootfsOfManyLayers(t *testing.T) {
	for _, n := range []int{1, 2, 60, 200} {
		for _, readOnly := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d layers, read-only %v", n, readOnly), func(t *testing.T) {
				dir := room(t)
				// Long names: 200 of them would not fit into the options of a mount.
				long := filepath.Join(dir, "odd:name,with=all\\of it", strings.Repeat("x", 150))
				var layers []string
				for i := range n {
					layer := filepath.Join(long, fmt.Sprint(i))
					write(t, filepath.Join(layer, fmt.Sprintf("own%d", i)), fmt.Sprint(i))
					write(t, filepath.Join(layer, "shared"), fmt.Sprint(i))
					layers = append(layers, layer)
				}
				root := mount(t, filepath.Join(long, "fs"), layers, readOnly)
				for i := range n {
					wantFile(t, filepath.Join(root, fmt.Sprintf("own%d", i)), fmt.Sprint(i))
				}
				wantFile(t, filepath.Join(root, "shared"), fmt.Sprint(n-1)) // the topmost layer wins
				err := os.WriteFile(filepath.Join(root, "new"), nil, 0o644)
				if readOnly && !errors.Is(err, unix.EROFS) || !readOnly && err != nil {
					t.Errorf("write: %v", err)
				}
			})
		}
	}
}

// Images repeat layers, most of all the empty one; overlayfs refuses that.
func TestMountRootfsOfRepeatedLayers(t *testing.T) {
	dir := room(t)
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	write(t, filepath.Join(a, "both"), "a")
	write(t, filepath.Join(a, "gone"), "a")
	write(t, filepath.Join(b, "both"), "b")
	must(t, unix.Mknod(filepath.Join(b, "gone"), unix.S_IFCHR, 0))

	root := mount(t, filepath.Join(dir, "aba"), []string{a, b, a}, false)
	wantFile(t, filepath.Join(root, "both"), "a")
	wantFile(t, filepath.Join(root, "gone"), "a")
	root = mount(t, filepath.Join(dir, "bab"), []string{b, a, b}, false)
	wantFile(t, filepath.Join(root, "both"), "b")
	wantMissing(t, filepath.Join(root, "gone"))
}

func TestMountRootfsHonoursMarksOfLayers(t *testing.T) {
	dir := room(t)
	low, high := filepath.Join(dir, "low"), filepath.Join(dir, "high")
	write(t, filepath.Join(low, "gone"), "x")
	write(t, filepath.Join(low, "stays"), "x")
	write(t, filepath.Join(low, "opaque", "old"), "x")
	mkdir(t, high)
	must(t, unix.Mknod(filepath.Join(high, "gone"), unix.S_IFCHR, 0))
	write(t, filepath.Join(high, "opaque", "new"), "y")
	must(t, unix.Setxattr(filepath.Join(high, "opaque"), "user.overlay.opaque", []byte("y"), 0))

	for _, readOnly := range []bool{false, true} {
		root := mount(t, filepath.Join(dir, fmt.Sprint(readOnly)), []string{low, high}, readOnly)
		wantMissing(t, filepath.Join(root, "gone"))
		wantMissing(t, filepath.Join(root, "opaque", "old"))
		wantFile(t, filepath.Join(root, "opaque", "new"), "y")
		wantFile(t, filepath.Join(root, "stays"), "x")
	}
}

func TestRootfsOfOneImageAreIndependent(t *testing.T) {
	dir := room(t)
	layer := filepath.Join(dir, "layer")
	write(t, filepath.Join(layer, "etc", "f"), "image")
	one := mount(t, filepath.Join(dir, "one"), []string{layer}, false)
	two := mount(t, filepath.Join(dir, "two"), []string{layer}, false)
	ro := mount(t, filepath.Join(dir, "ro"), []string{layer}, true)

	must(t, os.WriteFile(filepath.Join(one, "etc", "f"), []byte("one"), 0o644))
	must(t, os.RemoveAll(filepath.Join(two, "etc")))
	wantFile(t, filepath.Join(one, "etc", "f"), "one")
	wantMissing(t, filepath.Join(two, "etc"))
	wantFile(t, filepath.Join(ro, "etc", "f"), "image")
	wantFile(t, filepath.Join(layer, "etc", "f"), "image")
}

func TestRootfsHasOrdinaryRoot(t *testing.T) {
	dir := room(t)
	old := syscall.Umask(0o077)
	t.Cleanup(func() { syscall.Umask(old) })
	layer := filepath.Join(dir, "layer")
	mkdir(t, layer)
	root := mount(t, filepath.Join(dir, "fs"), []string{layer}, false)
	st, err := os.Stat(root)
	must(t, err)
	if st.Mode().Perm() != 0o755 {
		t.Errorf("/ has mode %v, want 0755", st.Mode())
	}
	var fs unix.Statfs_t
	must(t, unix.Statfs(root, &fs))
	if fs.Flags&unix.ST_NODEV == 0 {
		t.Error("a device file of an image would work")
	}
	if fs.Flags&unix.ST_NOSUID != 0 {
		t.Error("sudo would not work in the container")
	}
}

func TestMountRootfsNamesWhatIsWrong(t *testing.T) {
	dir := room(t)
	good := filepath.Join(dir, "good")
	mkdir(t, good)
	file := filepath.Join(dir, "file")
	write(t, file, "")
	tests := []struct {
		bad  string
		want error
	}{
		{filepath.Join(dir, "missing"), unix.ENOENT},
		{file, unix.ENOTDIR},
	}
	for _, tt := range tests {
		fs := filepath.Join(dir, "fs")
		_, err := MountRootfs(fs, []string{good, tt.bad}, false, "")
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.bad) {
			t.Errorf("error %v, want %v that names %s", err, tt.want, tt.bad)
		}
		wantMissing(t, fs)
	}
	if _, err := MountRootfs(filepath.Join(dir, "fs"), nil, false, ""); err == nil || !strings.Contains(err.Error(), "no layers") {
		t.Errorf("error %v, want one that says that there are no layers", err)
	}
}

func TestMountRootfsStartsAfresh(t *testing.T) {
	dir := room(t)
	layer, fs := filepath.Join(dir, "layer"), filepath.Join(dir, "fs")
	mkdir(t, layer)
	first := mount(t, fs, []string{layer}, false)
	write(t, filepath.Join(first, "left by the first"), "x")
	second := mount(t, fs, []string{layer}, false) // as after a crash: not unmounted
	wantMissing(t, filepath.Join(second, "left by the first"))
	points, err := mountsBelow(fs)
	must(t, err)
	if len(points) != 1 {
		t.Errorf("mounts %v, want one", points)
	}
}

func TestUnmountRootfs(t *testing.T) {
	states := []struct {
		name string
		make func(t *testing.T, fs, layer string)
	}{
		{"nothing", func(*testing.T, string, string) {}},
		{"empty directory", func(t *testing.T, fs, _ string) { mkdir(t, fs) }},
		{"directories only", func(t *testing.T, fs, _ string) {
			mkdir(t, filepath.Join(fs, upperDir))
			mkdir(t, filepath.Join(fs, MergedDir))
		}},
		{"mounted and written", func(t *testing.T, fs, layer string) {
			root, err := MountRootfs(fs, []string{layer}, false, "")
			must(t, err)
			write(t, filepath.Join(root, "d", "f"), "x")
			must(t, os.Remove(filepath.Join(root, "image")))
		}},
		{"busy", func(t *testing.T, fs, layer string) {
			root, err := MountRootfs(fs, []string{layer}, false, "")
			must(t, err)
			f, err := os.Open(filepath.Join(root, "image"))
			must(t, err)
			t.Cleanup(func() { f.Close() })
		}},
		{"unmounted by somebody else", func(t *testing.T, fs, layer string) {
			root, err := MountRootfs(fs, []string{layer}, false, "")
			must(t, err)
			must(t, unix.Unmount(root, 0))
		}},
		{"read-only", func(t *testing.T, fs, layer string) {
			_, err := MountRootfs(fs, []string{layer}, true, "")
			must(t, err)
		}},
	}
	for _, s := range states {
		t.Run(s.name, func(t *testing.T) {
			dir := room(t)
			layer, fs := filepath.Join(dir, "layer"), filepath.Join(dir, "fs")
			write(t, filepath.Join(layer, "image"), "x")
			s.make(t, fs, layer)
			must(t, UnmountRootfs(fs))
			wantMissing(t, fs)
			wantFile(t, filepath.Join(layer, "image"), "x")
		})
	}
}

func TestProbeOverlay(t *testing.T) {
	dir := room(t)
	must(t, ProbeOverlay(dir))
	left, err := os.ReadDir(dir)
	must(t, err)
	if len(left) > 0 {
		t.Errorf("the probe left %v", left)
	}

	t.Run("on a file system that cannot", func(t *testing.T) {
		layer := filepath.Join(dir, "layer")
		mkdir(t, layer)
		overlay := mount(t, filepath.Join(dir, "fs"), []string{layer}, false)
		err := ProbeOverlay(overlay)
		if err == nil {
			t.Fatal("no error: overlayfs on overlayfs works?")
		}
		if hint := report.Hint(err); !strings.Contains(hint, "XDG_DATA_HOME") || !strings.Contains(hint, "overlayfs") {
			t.Errorf("hint %q (of %v) must name XDG_DATA_HOME and the file system", hint, err)
		}
		left, err := os.ReadDir(overlay)
		must(t, err)
		if len(left) > 0 {
			t.Errorf("the probe left %v", left)
		}
	})
}

func TestExplainOverlay(t *testing.T) {
	for errno, want := range map[unix.Errno]string{
		unix.ENODEV: "modprobe overlay", unix.EPERM: "5.11", unix.EINVAL: "XDG_DATA_HOME", unix.EIO: "XDG_DATA_HOME", unix.ENOSPC: "disk space", unix.EMFILE: "",
	} {
		err := explainOverlay("/", fmt.Errorf("mount: %w", errno))
		if hint := report.Hint(err); !strings.Contains(hint, want) || want == "" && hint != "" {
			t.Errorf("%v: hint %q, want %q in it", errno, hint, want)
		}
		if !errors.Is(err, errno) {
			t.Errorf("%v was lost: %v", errno, err)
		}
	}
}

// TestKeepRootfs: the next root file system has what was written to the one before it, and removed from it.
func TestKeepRootfs(t *testing.T) {
	dir := room(t)
	layer, kept := filepath.Join(dir, "layer"), filepath.Join(dir, "kept")
	write(t, filepath.Join(layer, "image"), "of the image")
	write(t, filepath.Join(layer, "gone"), "of the image")
	must(t, KeepRootfs(filepath.Join(dir, "none"), kept)) // there is none yet
	for i, text := range []string{"", "0", "1"} {
		fs := filepath.Join(dir, fmt.Sprint("fs", i))
		root, err := MountRootfsAgain(fs, []string{layer}, "", kept)
		must(t, err)
		t.Cleanup(func() { must(t, UnmountRootfs(fs)) })
		wantFile(t, filepath.Join(root, "image"), "of the image")
		if text != "" {
			wantFile(t, filepath.Join(root, "written"), text)
			if _, err := os.Lstat(filepath.Join(root, "gone")); !errors.Is(err, unix.ENOENT) {
				t.Errorf("the removed file: %v", err)
			}
		}
		write(t, filepath.Join(root, "written"), fmt.Sprint(i))
		must(t, os.RemoveAll(filepath.Join(root, "gone")))
		must(t, KeepRootfs(fs, kept))
		must(t, UnmountRootfs(fs))
	}
	must(t, RemoveTree(kept))
}
