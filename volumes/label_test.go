package volumes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

// The label follows the mount's other options; categories contain commas.
func TestLabelled(t *testing.T) {
	for _, c := range [][3]string{
		{"mode=0711", "", "mode=0711"},
		{"mode=0711", "u:object_r:container_file_t:s0:c1,c2", `mode=0711,context="u:object_r:container_file_t:s0:c1,c2"`},
	} {
		if got := labelled(c[0], c[1]); got != c[2] {
			t.Errorf("%s, want %s", got, c[2])
		}
	}
	if left, err := Relabel("/nowhere", ""); left != 0 || err != nil {
		t.Error("no label is no reason to look", left, err)
	}
}

// A file system without labels is left unchanged, without an error.
func TestRelabelWhereThereAreNoLabels(t *testing.T) {
	testenv.NoLeaks(t)
	dir := filepath.Join(t.TempDir(), "memory")
	must(t, MountMemory(dir, ""))
	t.Cleanup(func() { must(t, Unmount(dir)) })
	write(t, filepath.Join(dir, "f"), "x")
	if left, err := Relabel(dir, "system_u:object_r:container_file_t:s0:c1,c2"); left != 0 || err != nil {
		t.Error(left, err)
	}
	queues := filepath.Join(t.TempDir(), "mqueue")
	must(t, os.Mkdir(queues, 0o755))
	must(t, unix.Mount("mqueue", queues, "mqueue", harmless, ""))
	t.Cleanup(func() { must(t, Unmount(queues)) })
	must(t, labelQueues(queues, "system_u:object_r:container_file_t:s0:c1,c2"))
}

// Where files can have labels, everything in a volume gets one, including the volume itself;
// targets of links and mounts in it keep theirs.
func TestRelabel(t *testing.T) {
	testenv.NoLeaks(t)
	dir := t.TempDir()
	volume, outside, below := filepath.Join(dir, "volume"), filepath.Join(dir, "outside"), filepath.Join(dir, "volume", "d", "below")
	for _, m := range []string{volume, outside, below} {
		must(t, MountTmpfs(m, 1<<20, 0o755, "")) // in a user namespace other file systems do not permit this attribute
		t.Cleanup(func() { must(t, Unmount(m)) })
	}
	for _, f := range []string{filepath.Join(volume, "f"), filepath.Join(volume, "d", "f"), filepath.Join(outside, "f"), filepath.Join(below, "f")} {
		write(t, f, "x")
	}
	must(t, os.Symlink(filepath.Join(outside, "f"), filepath.Join(volume, "link")))
	must(t, unix.Mkfifo(filepath.Join(volume, "fifo"), 0o600))
	labelOf := func(path string) string {
		has := make([]byte, 256)
		n, err := unix.Lgetxattr(path, labelName, has)
		if err != nil {
			return ""
		}
		return strings.TrimRight(string(has[:n]), "\x00")
	}
	other := labelOf(outside)
	for _, label := range []string{"system_u:object_r:container_file_t:s0:c1,c2", "system_u:object_r:container_file_t:s0"} {
		for range 2 {
			if left, err := Relabel(volume, label); left != 0 || err != nil {
				t.Fatal(left, err)
			}
		}
		for path, want := range map[string]string{
			volume: label, volume + "/f": label, volume + "/d": label, volume + "/d/f": label, volume + "/fifo": label, volume + "/link": label,
			outside: other, outside + "/f": other, below: other, below + "/f": other,
		} {
			if got := labelOf(path); got != want {
				t.Errorf("%s is %q, want %q", path, got, want)
			}
		}
	}
}
