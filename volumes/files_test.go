package volumes

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

func text(mode uint32, pairs ...string) map[string]File {
	files := map[string]File{}
	for i := 0; i < len(pairs); i += 2 {
		files[pairs[i]] = File{Data: []byte(pairs[i+1]), Mode: mode}
	}
	return files
}

// wantFiles checks that a volume contains exactly these files.
func wantFiles(t testing.TB, dir string, files map[string]File) {
	t.Helper()
	for name, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(b) != string(f.Data) {
			t.Errorf("%s has %q (%v), want %q", name, b, err, f.Data)
		}
	}
	entries, err := os.ReadDir(dir)
	must(t, err)
	var have []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "..") {
			have = append(have, e.Name())
		}
	}
	if want := slices.Sorted(maps.Keys(topNames(files))); !slices.Equal(have, want) {
		t.Errorf("%s has %v, want %v", dir, have, want)
	}
}

func TestWriteFiles(t *testing.T) {
	testenv.NoLeaks(t)
	dir := t.TempDir()
	for i, files := range []map[string]File{
		{},
		text(0o644, "a", "1", "b/c/d", "2", "b/e", "3"),
		text(0o644, "a", "1", "b/c/d", "2", "b/e", "4"),
		text(0o400, "a", "1", "b/c/d", "2", "b/e", "4"),
		text(0o644, "a/deeper", "1", "b", "was a directory"),
		text(0o644, "a", "again a file", ".hidden", "", "line\nof\x01/two\t", "control", "..."[:1]+"x..y", "dots"),
		{},
		text(0o644, "z", strings.Repeat("x", 1<<20)),
	} {
		must(t, WriteFiles(dir, files, nil, nil, 0))
		wantFiles(t, dir, files)
		data, err := os.Readlink(filepath.Join(dir, dataLink))
		must(t, err)
		must(t, WriteFiles(dir, files, nil, nil, 0))
		if again, _ := os.Readlink(filepath.Join(dir, dataLink)); again != data {
			t.Errorf("step %d: the same files were written again", i)
		}
		must(t, SweepFiles(dir, nil))
		wantFiles(t, dir, files)
		entries, err := os.ReadDir(dir)
		must(t, err)
		if want := len(topNames(files)) + 2; len(entries) != want {
			t.Errorf("step %d: %d names are in the volume, want %d: %v", i, len(entries), want, entries)
		}
	}
}

func TestWriteFilesModesAndOwners(t *testing.T) {
	testenv.NoLeaks(t)
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	dir := t.TempDir()
	files := map[string]File{
		"plain": {Mode: 0o644}, "own": {Mode: 0o400, UID: 1000}, "sub/run": {Mode: 0o755}, "none": {Mode: 0}, "all": {Mode: 0o777},
	}
	must(t, WriteFiles(dir, files, nil, nil, 0))
	place := filepath.Join(dir, dataLink)
	wantOwner(t, place+"/", 0, 0, 0o755)
	wantOwner(t, filepath.Join(place, "plain"), 0, 0, 0o644)
	wantOwner(t, filepath.Join(place, "own"), 1000, 0, 0o400)
	wantOwner(t, filepath.Join(place, "sub"), 0, 0, 0o755)
	wantOwner(t, filepath.Join(place, "sub", "run"), 0, 0, 0o755)
	wantOwner(t, filepath.Join(place, "none"), 0, 0, 0)
	wantOwner(t, filepath.Join(place, "all"), 0, 0, 0o777)

	// With a group, which may read but not write.
	files["new"] = File{Mode: 0o600}
	must(t, WriteFiles(dir, files, nil, &Group{ID: 2000, ReadOnly: true}, 0))
	wantOwner(t, place+"/", 0, 2000, 0o2755)
	wantOwner(t, filepath.Join(place, "own"), 1000, 2000, 0o440)
	wantOwner(t, filepath.Join(place, "none"), 0, 2000, 0o440)
	wantOwner(t, filepath.Join(place, "new"), 0, 2000, 0o640)
	wantOwner(t, filepath.Join(place, "sub"), 0, 2000, 0o2755)
	data, err := os.Readlink(place)
	must(t, err)
	must(t, WriteFiles(dir, files, nil, &Group{ID: 2000, ReadOnly: true}, 0))
	if again, _ := os.Readlink(place); again != data {
		t.Error("the same files were written again")
	}
}

// In a pod with a user namespace of its own everything belongs to the ID that the pod has as 0.
func TestWriteFilesForAnotherRoot(t *testing.T) {
	testenv.NoLeaks(t)
	for _, group := range []*Group{nil, {ID: 2000, ReadOnly: true}} {
		dir := t.TempDir()
		must(t, os.Chown(dir, 3000, 3000))
		files := map[string]File{"plain": {Mode: 0o644, UID: 3000}, "own": {Mode: 0o400, UID: 3010}, "sub/run": {Mode: 0o755, UID: 3000}}
		gid, setgid := uint32(3000), uint32(0)
		if group != nil {
			gid, setgid = uint32(group.ID), 0o2000
		}
		for range 2 {
			must(t, WriteFiles(dir, files, []string{"sub/for", "beside"}, group, 3000))
			files["next"] = File{Mode: 0o644, UID: 3000}
		}
		place := filepath.Join(dir, dataLink)
		wantOwner(t, place+"/", 3000, gid, 0o755|setgid)
		wantOwner(t, filepath.Join(place, "plain"), 3000, gid, 0o644)
		wantOwner(t, filepath.Join(place, "next"), 3000, gid, 0o644)
		wantOwner(t, filepath.Join(place, "sub", "for"), 3000, gid, 0o755|setgid)
		wantOwner(t, filepath.Join(dir, "beside"), 3000, gid, 0o755|setgid)
		for _, name := range []string{dataLink, "plain", "next", "sub"} {
			var st unix.Stat_t
			must(t, unix.Lstat(filepath.Join(dir, name), &st))
			if st.Uid != 3000 {
				t.Errorf("the link %s belongs to %d", name, st.Uid)
			}
		}
	}
}

func TestWriteFilesRefusesPaths(t *testing.T) {
	testenv.NoLeaks(t)
	for _, name := range []string{
		"", "/etc/passwd", "..", "../x", "a/../../x", "..data", "..data/x", "..2026", "a/..", "a\x00b",
		strings.Repeat("n", 256), "d/" + strings.Repeat("n", 256), strings.Repeat("d/", 2048) + "x",
	} {
		dir := t.TempDir()
		if err := WriteFiles(dir, text(0o644, "good", "x", name, "x"), nil, nil, 0); err == nil {
			t.Errorf("%.20q is written", name)
		}
		left, err := os.ReadDir(dir)
		must(t, err)
		if len(left) > 0 {
			t.Errorf("%.20q: left %v", name, left)
		}
	}
	for _, name := range []string{"a..b", "a/..b", strings.Repeat("n", 255), "-rf *\n", "~"} {
		if err := checkFilePath(name); err != nil {
			t.Errorf("%.20q: %v", name, err)
		}
	}
}

// A process that can write to the volume has put links to a file of the host wherever the next
// version is written (CVE-2025-9566).
func TestWriteFilesFollowsNothing(t *testing.T) {
	testenv.NoLeaks(t)
	outside := t.TempDir()
	canary := filepath.Join(outside, "canary")
	write(t, canary, "host")
	for name, spoil := range map[string]func(dir string) error{
		"a key is a link":    func(dir string) error { return replaceBy(dir, "key", canary) },
		"the data directory": func(dir string) error { return replaceBy(dir, dataLink, outside) },
		"an absolute data link": func(dir string) error {
			return errors.Join(replaceBy(dir, dataLink, "/"), replaceBy(dir, "canary", canary))
		},
		"temporary names": func(dir string) error {
			return errors.Join(os.Symlink(canary, filepath.Join(dir, newDataLink)), os.Symlink(outside, filepath.Join(dir, newLink)))
		},
		"temporary directories": func(dir string) error {
			return errors.Join(os.MkdirAll(filepath.Join(dir, newDataLink, "x"), 0o755), os.MkdirAll(filepath.Join(dir, newLink, "x"), 0o755))
		},
		"a key is a directory": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "key")), os.MkdirAll(filepath.Join(dir, "key", "x"), 0o755))
		},
		"inside the current directory": func(dir string) error { return replaceBy(filepath.Join(dir, dataLink), "key", canary) },
		"a part of a path":             func(dir string) error { return replaceBy(filepath.Join(dir, dataLink), "sub", outside) },
		"the data link is a pipe":      func(dir string) error { return replacePipe(dir, dataLink) },
		"a key is a pipe":              func(dir string) error { return replacePipe(filepath.Join(dir, dataLink), "key") },
		"everything is gone":           func(dir string) error { return os.Remove(filepath.Join(dir, dataLink)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, WriteFiles(dir, text(0o644, "key", "1", "sub/key", "1"), nil, nil, 0))
			must(t, spoil(dir))
			for _, version := range []string{"1", "2", "2"} {
				files := text(0o666, "key", version, "sub/key", version, "canary", version)
				must(t, WriteFiles(dir, files, nil, &Group{ID: 2000, ReadOnly: true}, 0))
				wantFiles(t, dir, files)
			}
			must(t, SweepFiles(dir, nil))
			wantFile(t, canary, "host")
			wantOwner(t, canary, 0, 0, 0o644)
			if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
				t.Errorf("outside: %v, %v", left, err)
			}
		})
	}
}

func replaceBy(dir, name, target string) error {
	os.RemoveAll(filepath.Join(dir, name))
	return os.Symlink(target, filepath.Join(dir, name))
}

func replacePipe(dir, name string) error {
	os.RemoveAll(filepath.Join(dir, name))
	return unix.Mkfifo(filepath.Join(dir, name), 0o666)
}

// A reader of all files through one open directory sees one version of them, and a reader by name
// always finds a file.
func TestFilesAreNeverHalfVisible(t *testing.T) {
	testenv.NoLeaks(t)
	const reads, least = 100_000, 200
	dir := filepath.Join(t.TempDir(), "files")
	must(t, MountMemory(dir, "")) // as a pod's are
	t.Cleanup(func() { must(t, UnmountTree(dir)) })
	version := func(n int) map[string]File {
		v := fmt.Sprint(n)
		return text(0o644, "a", v, "sub/b", v, "c", strings.Repeat(v+"\n", 500))
	}
	must(t, WriteFiles(dir, version(0), nil, nil, 0))
	// A version is written during each read. The next but one, which removes its files, is written
	// after that read: real updates are at least that far apart.
	turn := make(chan int)
	var writing sync.WaitGroup
	writing.Go(func() {
		for n := range turn {
			if err := WriteFiles(dir, version(n), nil, nil, 0); err != nil {
				t.Error(err)
			}
		}
	})
	// On a busy machine writing may be so much slower than reading that the test reads longer until
	// versions have been exchanged often enough.
	swaps := 0
	deadline := time.Now().Add(2 * time.Minute)
	for i := 0; i < reads || swaps < least && time.Now().Before(deadline); i++ {
		select {
		case turn <- i:
			swaps++
		default: // it still runs
		}
		if err := readOnce(dir, i); err != nil {
			t.Error(err)
			break
		}
	}
	close(turn)
	writing.Wait()
	if swaps < least && !t.Failed() {
		t.Errorf("%d versions were written meanwhile: the race was not run", swaps)
	}
}

func readOnce(dir string, i int) error {
	if i%4 > 0 { // by name, as most programs do
		name := []string{"a", "sub/b", "c"}[i%4-1]
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || len(b) == 0 {
			return fmt.Errorf("read %d: %s has %d bytes: %w", i, name, len(b), err)
		}
		first, _, _ := strings.Cut(string(b), "\n")
		if name == "c" && string(b) != strings.Repeat(first+"\n", 500) {
			return fmt.Errorf("read %d: half a file", i)
		}
		return nil
	}
	data, err := os.OpenRoot(filepath.Join(dir, dataLink))
	if err != nil {
		return err
	}
	defer data.Close()
	a, aerr := data.ReadFile("a")
	b, berr := data.ReadFile("sub/b")
	if string(a) != string(b) {
		return fmt.Errorf("read %d: two versions at once: %q, %q", i, a, b)
	}
	return errors.Join(aerr, berr)
}

func TestMountMemory(t *testing.T) {
	testenv.NoLeaks(t)
	dir := filepath.Join(t.TempDir(), "a", "secrets")
	must(t, MountMemory(dir, ""))
	t.Cleanup(func() { must(t, UnmountTree(dir)) })
	var fs unix.Statfs_t
	must(t, unix.Statfs(dir, &fs))
	if fs.Type != unix.RAMFS_MAGIC || int64(fs.Flags)&harmlessStat != harmlessStat {
		t.Errorf("type %#x, flags %#x, want ramfs, nosuid, nodev, noexec", fs.Type, fs.Flags)
	}
	must(t, WriteFiles(dir, text(0o400, "password", "x"), nil, &Group{ID: 2000, ReadOnly: true}, 0))
	wantFile(t, filepath.Join(dir, "password"), "x")
}

const harmlessStat = int64(unix.ST_NOSUID | unix.ST_NODEV | unix.ST_NOEXEC)

func BenchmarkWriteFiles(b *testing.B) {
	dir := b.TempDir()
	n := 0
	for b.Loop() {
		n++
		must(b, WriteFiles(dir, text(0o644, "a", fmt.Sprint(n), "b", "x", "c", "y"), nil, nil, 0))
	}
}
