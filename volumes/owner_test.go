package volumes

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

// wantOwner checks the IDs and the mode, including set-id bits, of a file itself.
func wantOwner(t testing.TB, path string, uid, gid, mode uint32) {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Lstat(path, &st))
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		mode = 0o777
	}
	if st.Uid != uid || st.Gid != gid || st.Mode&0o7777 != mode {
		t.Errorf("%s: %d:%d %04o, want %d:%d %04o", path, st.Uid, st.Gid, st.Mode&0o7777, uid, gid, mode)
	}
}

func TestGroup(t *testing.T) {
	testenv.NoLeaks(t)
	for _, readOnly := range []bool{false, true} {
		dir := t.TempDir()
		path := filepath.Join(dir, "volume")
		write(t, filepath.Join(path, "sub", "file"), "x")
		must(t, os.Chown(filepath.Join(path, "sub", "file"), 1000, 1000))
		write(t, filepath.Join(path, "closed"), "x")
		must(t, os.Chmod(filepath.Join(path, "closed"), 0))
		write(t, filepath.Join(path, "set"), "x")
		must(t, os.Chmod(filepath.Join(path, "set"), os.ModeSetuid|0o755))
		must(t, os.Mkdir(filepath.Join(path, "locked"), 0))
		write(t, filepath.Join(dir, "outside"), "x")
		must(t, os.Chmod(filepath.Join(dir, "outside"), 0o600))
		must(t, os.Symlink("../outside", filepath.Join(path, "link")))
		must(t, os.Symlink("..", filepath.Join(path, "up")))
		must(t, unix.Mkfifo(filepath.Join(path, "fifo"), 0o600))
		mkdir(t, filepath.Join(path, "mount"))
		must(t, MountTmpfs(filepath.Join(path, "mount"), 1<<20, 0o700, ""))

		left, err := Group{ID: 2000, ReadOnly: readOnly}.Apply(path)
		must(t, err)
		if left != 0 {
			t.Errorf("%d files are left", left)
		}
		file, dirs := uint32(0o660), uint32(0o2770)
		if readOnly {
			file, dirs = 0o440, 0o2550
		}
		wantOwner(t, path, 0, 2000, 0o755|dirs)
		wantOwner(t, filepath.Join(path, "sub"), 0, 2000, 0o755|dirs)
		wantOwner(t, filepath.Join(path, "sub", "file"), 1000, 2000, 0o644|file)
		wantOwner(t, filepath.Join(path, "closed"), 0, 2000, file)
		wantOwner(t, filepath.Join(path, "set"), 0, 2000, 0o4755|file)
		wantOwner(t, filepath.Join(path, "locked"), 0, 2000, dirs)
		wantOwner(t, filepath.Join(path, "link"), 0, 2000, 0)
		wantOwner(t, filepath.Join(path, "fifo"), 0, 2000, 0o600|file)
		wantOwner(t, filepath.Join(path, "mount"), 0, 0, 0o700)
		wantOwner(t, filepath.Join(dir, "outside"), 0, 0, 0o600)
		must(t, Unmount(filepath.Join(path, "mount")))
	}
}

func TestGroupOnRootMismatch(t *testing.T) {
	testenv.NoLeaks(t)
	path := filepath.Join(t.TempDir(), "volume")
	g := Group{ID: 2000, OnRootMismatch: true}
	for i, spoil := range []func() error{
		func() error { return nil }, // a new volume
		func() error { return os.Chown(path, -1, 0) },
		func() error { return os.Chmod(path, 0o770) },
		func() error { return os.Chmod(path, os.ModeSetgid|0o700) },
	} {
		t.Log("case", i)
		file := filepath.Join(path, "file")
		write(t, file, "x")
		must(t, os.Chown(file, -1, 0))
		must(t, spoil())
		_, err := g.Apply(path)
		must(t, err)
		wantOwner(t, file, 0, 2000, 0o664)
		must(t, os.Chown(file, -1, 7))
		_, err = g.Apply(path)
		must(t, err)
		wantOwner(t, file, 0, 7, 0o664) // the root's owner and mode were right
	}
	_, err := Group{ID: 2000}.Apply(path)
	must(t, err)
	wantOwner(t, filepath.Join(path, "file"), 0, 2000, 0o664)
}

func TestGroupOfADeepTree(t *testing.T) {
	testenv.NoLeaks(t)
	path := filepath.Join(t.TempDir(), "v")
	deep := path + strings.Repeat("/d", 1500)
	mkdir(t, deep)
	_, err := Group{ID: 2000}.Apply(path)
	must(t, err)
	wantOwner(t, deep, 0, 2000, 0o2775)
}

// A running container changes the volume while it is given to a group: files outside are never
// changed.
func TestGroupRaces(t *testing.T) {
	testenv.NoLeaks(t)
	_, path, outside := openVolume(t)
	mkdir(t, filepath.Join(path, "d"))
	write(t, filepath.Join(path, "d", "canary"), "x")
	must(t, os.Symlink("../outside", filepath.Join(path, "evil")))
	must(t, os.Chmod(filepath.Join(outside, "canary"), 0o600))
	exchange(t, filepath.Join(path, "d"), filepath.Join(path, "evil"))
	for i := range swapRounds(t) {
		_, err := Group{ID: 2000 + i%2}.Apply(path)
		must(t, err)
	}
	wantOwner(t, filepath.Join(outside, "canary"), 0, 0, 0o600)
	wantOwner(t, outside, 0, 0, 0o755)
}

func TestGroupOfNothing(t *testing.T) {
	if _, err := (Group{ID: 1}).Apply(filepath.Join(t.TempDir(), "none")); !os.IsNotExist(err) && err == nil {
		t.Errorf("error %v, want not exist", err)
	}
}

func BenchmarkGroup(b *testing.B) {
	path := b.TempDir()
	for i := range 1000 {
		write(b, filepath.Join(path, string(rune('a'+i%26)), strings.Repeat("x", 1+i/26)), "")
	}
	var n atomic.Int64
	for b.Loop() {
		_, err := Group{ID: 2000 + int(n.Add(1)%2)}.Apply(path)
		must(b, err)
	}
}
