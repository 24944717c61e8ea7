package volumes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

// aRoot returns a root file system with some links, and a volume with a file and a directory.
func aRoot(t testing.TB) (root, volume string) {
	t.Helper()
	dir := t.TempDir()
	root, volume = filepath.Join(dir, "root"), filepath.Join(dir, "volume")
	mkdir(t, filepath.Join(root, "run"))
	mkdir(t, filepath.Join(root, "etc"))
	write(t, filepath.Join(root, "etc", "conf"), "image")
	must(t, os.Symlink("/run", filepath.Join(root, "link")))
	must(t, os.Symlink("/etc/conf", filepath.Join(root, "conf")))
	must(t, os.Symlink("..", filepath.Join(root, "up")))
	must(t, os.Symlink("/nowhere", filepath.Join(root, "dangling")))
	write(t, filepath.Join(volume, "file"), "volume")
	t.Cleanup(func() { must(t, unmountBelow(root)) })
	return root, volume
}

func TestPlace(t *testing.T) {
	testenv.NoLeaks(t)
	for _, test := range []struct {
		target string
		file   bool // the volume's file is mounted, not the volume
		placed bool
	}{
		{"/run", false, true},
		{"/new/deep/er", false, true},
		{"/etc/conf", true, true},
		{"/etc/new/file", true, true},
		{"/link", false, false},
		{"/link/below", false, false},
		{"/conf", true, false},
		{"/up/out", false, false},
		{"/dangling", false, false},
		{"/etc/conf", false, false},
		{"/run", true, false},
		{"/etc/conf/below", false, false},
	} {
		root, volume := aRoot(t)
		p := Placement{Source: volume, Target: test.target}
		look := filepath.Join(root, test.target, "file")
		if test.file {
			p.Source, look = filepath.Join(volume, "file"), filepath.Join(root, test.target)
		}
		n := Place(root, 0, []Placement{p, {Source: volume, Target: "/second"}})
		if !test.placed {
			if points, err := mountsBelow(root); n != 0 || err != nil || len(points) > 0 {
				t.Errorf("%s: %d placed, mounts %v, %v", test.target, n, points, err)
			}
			if left, err := os.ReadDir(filepath.Dir(root)); err != nil || len(left) != 2 {
				t.Errorf("%s: outside there are %v, %v", test.target, left, err)
			}
			continue
		}
		if n != 2 {
			t.Errorf("%s: %d placed", test.target, n)
			continue
		}
		wantFile(t, look, "volume")
		wantFile(t, filepath.Join(root, "second", "file"), "volume")
	}
}

// A later mount covers earlier ones, and can be inside of them.
func TestPlaceInOrder(t *testing.T) {
	testenv.NoLeaks(t)
	root, volume := aRoot(t)
	other := t.TempDir()
	write(t, filepath.Join(other, "inner"), "x")
	if n := Place(root, 0, []Placement{{Source: volume, Target: "/v"}, {Source: other, Target: "/v/sub"}, {Source: other, Target: "/v/sub"}}); n != 3 {
		t.Fatal(n)
	}
	wantFile(t, filepath.Join(root, "v", "sub", "inner"), "x")
	wantFile(t, filepath.Join(root, "v", "file"), "volume")
	wantMissing(t, filepath.Join(volume, "sub", "inner"))
}

func TestPlaceOptions(t *testing.T) {
	testenv.NoLeaks(t)
	root, volume := aRoot(t)
	below := filepath.Join(volume, "below")
	must(t, MountTmpfs(below, 1<<20, 0o777, ""))
	t.Cleanup(func() { must(t, Unmount(below)) })
	for _, test := range []struct {
		p          Placement
		flags      int64
		top, below bool // writable
	}{
		{Placement{Target: "/plain"}, 0, true, true},
		{Placement{Target: "/ro", ReadOnly: true}, unix.ST_RDONLY, false, true},
		{Placement{Target: "/rro", Recursive: true}, unix.ST_RDONLY, false, false},
		{Placement{Target: "/all", Options: []string{"nosuid", "nodev", "noexec"}}, harmlessStat, true, true},
		{Placement{Target: "/both", Options: []string{"nodev"}, ReadOnly: true, Recursive: true}, unix.ST_RDONLY | unix.ST_NODEV, false, false},
	} {
		test.p.Source = volume
		if n := Place(root, 0, []Placement{test.p}); n != 1 {
			t.Fatal(test.p.Target)
		}
		place := filepath.Join(root, test.p.Target)
		var st unix.Statfs_t
		must(t, unix.Statfs(place, &st))
		if all := harmlessStat | unix.ST_RDONLY; int64(st.Flags)&all&^test.flags&^unix.ST_NODEV != 0 || int64(st.Flags)&test.flags != test.flags {
			t.Errorf("%s has flags %#x, want %#x", test.p.Target, st.Flags, test.flags)
		}
		for dir, want := range map[string]bool{place: test.top, filepath.Join(place, "below"): test.below} {
			if err := os.WriteFile(filepath.Join(dir, "w"), nil, 0o600); (err == nil) != want {
				t.Errorf("writing to %s: %v", dir, err)
			}
		}
	}
	if b, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(b), root+"/plain shared") {
		t.Errorf("a placed volume is shared: %v", err)
	}
}

// Replacing the directories on the way to a target by links makes no mount appear elsewhere
// (CVE-2021-30465, CVE-2023-28642).
func TestPlaceRaces(t *testing.T) {
	testenv.NoLeaks(t)
	root, volume := aRoot(t)
	outside := filepath.Join(filepath.Dir(root), "outside")
	mkdir(t, filepath.Join(outside, "m"))
	mkdir(t, filepath.Join(root, "shared", "d", "m"))
	must(t, os.Symlink("../../outside", filepath.Join(root, "shared", "evil")))
	exchange(t, filepath.Join(root, "shared", "d"), filepath.Join(root, "shared", "evil"))
	placed, refused := 0, 0
	deadline := time.Now().Add(time.Minute)
	for round := 0; round < swapRounds(t) || placed*refused == 0 && time.Now().Before(deadline); round++ {
		if Place(root, 0, []Placement{{Source: volume, Target: "/shared/d/m"}}) == 0 {
			refused++
			continue
		}
		placed++
		points, err := mountsBelow(filepath.Dir(root))
		must(t, err)
		for _, p := range points {
			if !strings.HasPrefix(p, root+"/shared/") {
				t.Fatalf("mounted on %s", p)
			}
		}
		for len(points) > 0 { // its directory has one name or the other
			for _, name := range []string{"d", "evil"} {
				unix.Unmount(filepath.Join(root, "shared", name, "m"), unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
			}
			points, err = mountsBelow(root)
			must(t, err)
		}
	}
	if placed == 0 || refused == 0 {
		t.Errorf("%d placed, %d refused: the race was not run", placed, refused)
	}
}

func TestEnsureMountPoint(t *testing.T) {
	testenv.NoLeaks(t)
	root, _ := aRoot(t)
	for _, test := range []struct {
		name string
		make bool
		want bool
	}{
		{"/etc/conf", false, true},
		{"/etc/none", false, false},
		{"/etc/none", true, true},
		{"/new/deep/file", false, false},
		{"/new/deep/file", true, true},
		{"/conf", false, true}, // a link: the mounting process follows it
		{"/dangling", true, true},
		{"/etc/conf/below", true, false},
		{"/../canary", false, false},
	} {
		if got := EnsureMountPoint(root, test.name, test.make); got != test.want {
			t.Errorf("%s, making it %v: %v, want %v", test.name, test.make, got, test.want)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(root)); err != nil || len(entries) != 2 {
		t.Errorf("beside the root there are %v, %v", entries, err)
	}
}
