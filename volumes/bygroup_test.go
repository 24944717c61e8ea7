package volumes

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

// CheckGroups distinguishes what a user may open only through a supplementary group.
func TestCheckGroups(t *testing.T) {
	testenv.NoLeaks(t)
	const self, own, member, stranger = 1000, 1000, 2000, 3000
	top := t.TempDir()
	for _, dir := range []string{top, filepath.Dir(top), os.TempDir()} {
		must(t, os.Chmod(dir, 0o711))
	}
	defer os.Chmod(os.TempDir(), 0o700)
	make := func(name string, mode os.FileMode, uid, gid int) {
		path := filepath.Join(top, name)
		if mode.IsDir() {
			mkdir(t, path)
		} else {
			write(t, path, "x")
		}
		must(t, os.Chown(path, uid, gid))
		must(t, os.Chmod(path, mode))
	}
	make("own", 0o600, self, member)
	make("own-group", 0o640, 0, own)
	make("everybody", 0o666, 0, member)
	make("read", 0o640, 0, member)
	make("write", 0o664, 0, member)
	make("closed", 0o640, 0, stranger)
	make("no-right", 0o604, 0, member)
	make("dir", os.ModeDir|0o750, 0, member)
	make("dir/below", os.ModeDir|0o755, 0, 0)
	make("dir/below/file", 0o644, 0, 0)
	make("open", os.ModeDir|0o755, 0, member)
	make("open/file", 0o644, 0, 0)
	must(t, os.Symlink("dir/below/file", filepath.Join(top, "link")))
	want := map[string]string{
		"own": "", "own-group": "", "everybody": "", "closed": "", "no-right": "", "open": "", "open/file": "",
		"read": "/read", "write": "/write", "dir": "/dir", "dir/below": "/dir", "dir/below/file": "/dir", "link": "/dir",
	}
	asMember(t, self, own, member, func() {
		for name, by := range want {
			f, err := OpenHostPath(top, "/"+name, HostPathAny)
			if err != nil {
				t.Error(err)
				continue
			}
			err = CheckGroups(top, f)
			f.Close()
			if got := IsOpenedByGroup(filepath.Join(top, name)); got != (by != "") {
				t.Errorf("%s: opened by a group: %t", name, got)
			}
			var group *OpenedByGroup
			switch {
			case by == "" && err != nil, by != "" && (!errors.As(err, &group) || group.Path != by):
				t.Errorf("%s: %v, want %q", name, err, by)
			}
		}
	})
}

// asMember calls f on a thread with a user's IDs and one supplementary group, without capabilities.
func asMember(t *testing.T, uid, gid, group int, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread exits with the goroutine
		groups := []uint32{uint32(group)}
		calls := [][4]uintptr{
			{unix.SYS_SETGROUPS, 1, uintptr(unsafe.Pointer(&groups[0]))},
			{unix.SYS_SETRESGID, uintptr(gid), uintptr(gid), uintptr(gid)},
			{unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)},
		}
		for _, c := range calls { // for this thread alone
			if _, _, errno := syscall.RawSyscall(c[0], c[1], c[2], c[3]); errno != 0 {
				t.Error(errno)
				return
			}
		}
		f()
	}()
	<-done
}
