package volumes

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

// hostPathTypes are all types.
var hostPathTypes = []HostPathType{
	HostPathAny, HostPathDirectory, HostPathDirectoryOrCreate, HostPathFile, HostPathFileOrCreate,
	HostPathSocket, HostPathCharDevice, HostPathBlockDevice,
}

func TestHostPathTypes(t *testing.T) {
	testenv.NoLeaks(t)
	dir := t.TempDir()
	mkdir(t, filepath.Join(dir, "dir"))
	write(t, filepath.Join(dir, "file"), "x")
	must(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	must(t, err)
	defer l.Close()
	must(t, os.Symlink("dir", filepath.Join(dir, "link")))
	must(t, os.Symlink("nowhere", filepath.Join(dir, "dangling")))

	fits := map[string][]HostPathType{
		filepath.Join(dir, "dir"):    {HostPathDirectory, HostPathDirectoryOrCreate},
		filepath.Join(dir, "link"):   {HostPathDirectory, HostPathDirectoryOrCreate},
		filepath.Join(dir, "file"):   {HostPathFile, HostPathFileOrCreate},
		filepath.Join(dir, "fifo"):   {},
		filepath.Join(dir, "socket"): {HostPathSocket},
		"/dev/null":                  {HostPathCharDevice},
	}
	if dev := blockDevice(); dev != "" {
		fits[dev] = []HostPathType{HostPathBlockDevice}
	}
	for path, types := range fits {
		for _, kind := range hostPathTypes {
			f, err := OpenHostPath("/", path, kind)
			ok := kind == HostPathAny
			for _, fit := range types {
				ok = ok || fit == kind
			}
			if (err == nil) != ok {
				t.Errorf("%s as %q: %v, want that it fits: %t", path, kind, err, ok)
			}
			if err == nil {
				f.Close()
			} else if !strings.HasPrefix(err.Error(), "hostPath type check failed: "+path+" is not a ") {
				t.Errorf("%s as %q: %v", path, kind, err)
			}
		}
	}
	if _, err := OpenHostPath("/", dir, "Pipe"); err == nil || err.Error() != "Pipe is an invalid volume type" {
		t.Errorf("unknown type: %v", err)
	}
}

// blockDevice returns the path of a block device of the host, or "".
func blockDevice() string {
	entries, _ := os.ReadDir("/dev")
	for _, e := range entries {
		if e.Type()&os.ModeDevice != 0 && e.Type()&os.ModeCharDevice == 0 {
			return "/dev/" + e.Name()
		}
	}
	return ""
}

func TestMissingHostPaths(t *testing.T) {
	testenv.NoLeaks(t)
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	for kind, want := range map[HostPathType]os.FileMode{
		HostPathAny: os.ModeDir | 0o755, HostPathDirectoryOrCreate: os.ModeDir | 0o755, HostPathFileOrCreate: 0o644,
		HostPathDirectory: 0, HostPathFile: 0, HostPathSocket: 0, HostPathCharDevice: 0, HostPathBlockDevice: 0,
	} {
		path := filepath.Join(t.TempDir(), "new")
		f, err := OpenHostPath("/", path, kind)
		if want == 0 {
			if err == nil || !strings.HasPrefix(err.Error(), "hostPath type check failed: ") {
				t.Errorf("%q: %v", kind, err)
			}
			wantMissing(t, path)
			continue
		}
		must(t, err)
		f.Close()
		if st, err := os.Lstat(path); err != nil || st.Mode() != want {
			t.Errorf("%q made %v (%v), want %v", kind, st.Mode(), err, want)
		}
	}
	deep := filepath.Join(t.TempDir(), "a", "b")
	if _, err := OpenHostPath("/", deep, HostPathFileOrCreate); err == nil || !strings.Contains(err.Error(), "its directory does not exist") {
		t.Errorf("a file whose parent is missing: %v", err)
	}
	f, err := OpenHostPath("/", deep, HostPathDirectoryOrCreate)
	must(t, err)
	f.Close()
}

// The checked file is mounted, even if the path then leads elsewhere.
func TestHostPathIsBoundAsItWasChecked(t *testing.T) {
	testenv.NoLeaks(t)
	dir := t.TempDir()
	mkdir(t, filepath.Join(dir, "secret"))
	write(t, filepath.Join(dir, "secret", "canary"), "x")
	mkdir(t, filepath.Join(dir, "good"))
	f, err := OpenHostPath("/", filepath.Join(dir, "good"), HostPathDirectory)
	must(t, err)
	defer f.Close()
	must(t, os.Rename(filepath.Join(dir, "good"), filepath.Join(dir, "moved")))
	must(t, os.Symlink("secret", filepath.Join(dir, "good")))
	target := filepath.Join(dir, "stage", "0")
	must(t, Bind(f, target))
	t.Cleanup(func() { must(t, UnmountBelow(filepath.Join(dir, "stage"))) })
	wantMissing(t, filepath.Join(target, "canary"))
}
