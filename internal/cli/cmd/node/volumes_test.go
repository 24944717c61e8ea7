package node

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/store"
)

// remover is a launcher that removes files of the user.
type remover struct{ cmdutil.PodLauncher }

func (remover) RemoveVolume(dir string) error { return os.RemoveAll(dir) }

// TestVolumes: everybody may write into a volume's directory. It is made once, and no other directory is removed.
func TestVolumes(t *testing.T) {
	dirs := store.Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
	e := &engine{dirs: dirs, launcher: remover{}}
	dir, err := e.MakeVolume("pvc-1_default_data")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o777 || filepath.Base(dir) != "pvc-1_default_data" {
		t.Errorf("%s: %v, %v", dir, info.Mode(), err)
	}
	kept := filepath.Join(dir, "file")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if again, err := e.MakeVolume("pvc-1_default_data"); err != nil || again != dir {
		t.Errorf("again: %s, %v", again, err)
	}
	for name, other := range map[string]string{"pvc-1_default_data": dirs.Data, "pvc-2_default_data": dir, "..": filepath.Dir(dir), "": dir} {
		if err := e.RemoveVolume(name, other); err == nil {
			t.Errorf("%q is removed at %s", name, other)
		}
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := e.RemoveVolume("pvc-1_default_data", dir); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
	if _, err := e.MakeVolume("../x"); err == nil {
		t.Error("a volume outside")
	}
}
