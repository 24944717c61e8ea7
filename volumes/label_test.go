package volumes

import (
	"path/filepath"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
)

// A mount has a label for all of its files behind its other options; categories have commas.
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

// A file system whose files cannot have labels of their own is left as it is, without a word.
func TestRelabelWhereThereAreNoLabels(t *testing.T) {
	testenv.NoLeaks(t)
	dir := filepath.Join(t.TempDir(), "memory")
	must(t, MountMemory(dir, ""))
	t.Cleanup(func() { must(t, Unmount(dir)) })
	write(t, filepath.Join(dir, "f"), "x")
	if left, err := Relabel(dir, "system_u:object_r:container_file_t:s0:c1,c2"); left != 0 || err != nil {
		t.Error(left, err)
	}
}
