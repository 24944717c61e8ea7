package volumes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

func TestMakeEmptyDir(t *testing.T) {
	testenv.NoLeaks(t)
	old := syscall.Umask(0o077)
	t.Cleanup(func() { syscall.Umask(old) })
	volumes := filepath.Join(t.TempDir(), "pod", "volumes")
	path := filepath.Join(volumes, "cache")

	must(t, MakeDir(path, 0o777))
	wantMode(t, path, 0o777)
	wantMode(t, volumes, 0o700)

	// A second call, by the next supervisor, keeps the containers' files.
	write(t, filepath.Join(path, "f"), "kept")
	must(t, os.Chmod(path, 0o750))
	must(t, MakeDir(path, 0o777))
	wantMode(t, path, 0o750)
	wantFile(t, filepath.Join(path, "f"), "kept")

	for name, make := range map[string]func(path string) error{
		"file": func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"link": func(path string) error { return os.Symlink("/etc", path) },
	} {
		path := filepath.Join(volumes, name)
		must(t, make(path))
		if err := MakeDir(path, 0o777); !errors.Is(err, os.ErrExist) {
			t.Errorf("a %s in its place: error %v, want exist", name, err)
		}
	}
}

func wantMode(t *testing.T, path string, want os.FileMode) {
	t.Helper()
	st, err := os.Stat(path)
	must(t, err)
	if got := st.Mode() &^ os.ModeDir; got != want {
		t.Errorf("%s has mode %v, want %v", path, got, want)
	}
}

func TestMountTmpfs(t *testing.T) {
	testenv.NoLeaks(t)
	path := filepath.Join(t.TempDir(), "new", "tmpfs")
	must(t, MountTmpfs(path, 1<<20, 0o1777, ""))
	t.Cleanup(func() { must(t, Unmount(path)) })
	wantMode(t, path, 0o777|os.ModeSticky)

	file := filepath.Join(path, "f")
	must(t, os.WriteFile(file, make([]byte, 1<<19), 0o644))
	if err := os.WriteFile(file, make([]byte, 1<<20+1), 0o644); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("write beyond the size: %v, want ENOSPC", err)
	}
	must(t, os.Remove(file))
	files := 0
	for ; files <= minInodes; files++ {
		err := os.Mkdir(filepath.Join(path, fmt.Sprint(files)), 0o755)
		if errors.Is(err, unix.ENOSPC) {
			break
		}
		must(t, err)
	}
	if files >= minInodes || files < minInodes-2 {
		t.Errorf("%d directories fit, want a few less than %d", files, minInodes)
	}
	var fs unix.Statfs_t
	must(t, unix.Statfs(path, &fs))
	if want := int64(unix.ST_NOSUID | unix.ST_NODEV); int64(fs.Flags)&want != want {
		t.Errorf("flags %#x, want nosuid and nodev", fs.Flags)
	}
	if int64(fs.Flags)&unix.ST_NOEXEC != 0 {
		t.Error("programs cannot run from an emptyDir in memory")
	}
}

func TestMountTmpfsOfTheKernelsSize(t *testing.T) {
	testenv.NoLeaks(t)
	path := filepath.Join(t.TempDir(), "tmpfs")
	must(t, MountTmpfs(path, 0, 0o700, ""))
	t.Cleanup(func() { must(t, Unmount(path)) })
	wantMode(t, path, 0o700)
	var fs unix.Statfs_t
	must(t, unix.Statfs(path, &fs))
	var host unix.Sysinfo_t
	must(t, unix.Sysinfo(&host))
	size, memory := float64(fs.Blocks)*float64(fs.Bsize), float64(host.Totalram)*float64(host.Unit)
	if r := size / memory; r < 0.4 || r > 0.6 {
		t.Errorf("%.0f bytes of %.0f, want half", size, memory)
	}
}

func TestUnmount(t *testing.T) {
	testenv.NoLeaks(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "tmpfs")

	must(t, Unmount(filepath.Join(dir, "missing")))
	mkdir(t, path)
	must(t, Unmount(path))

	must(t, MountTmpfs(path, 1<<20, 0o755, ""))
	busy, err := os.Create(filepath.Join(path, "open"))
	must(t, err)
	must(t, Unmount(path))
	busy.Close()
	wantMissing(t, filepath.Join(path, "open"))

	t.Run("does not follow a link", func(t *testing.T) {
		must(t, MountTmpfs(path, 1<<20, 0o755, ""))
		t.Cleanup(func() { must(t, Unmount(path)) })
		write(t, filepath.Join(path, "f"), "still mounted")
		link := filepath.Join(dir, "link")
		must(t, os.Symlink(path, link))
		must(t, Unmount(link))
		wantFile(t, filepath.Join(path, "f"), "still mounted")
	})
}

// Only root of the host may mount huge pages: others get an error, and no mount remains.
func TestHugePagesAreRootsOfTheMachine(t *testing.T) {
	testenv.NoLeaks(t)
	path := filepath.Join(t.TempDir(), "huge")
	if err := MountHugePages(path, 2<<20, 0o777, ""); !errors.Is(err, unix.EPERM) {
		t.Errorf("error %v, want EPERM", err)
	}
}
